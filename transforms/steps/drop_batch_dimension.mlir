// Drops the batch dimension of 1 of a tile, so that a block computes a plain matmul.
//
// `tile_to_blocks` includes this step for batches. Later steps then see a `linalg.matmul` of matrices, which are
// rank-reduced slices of the batch. Upstream's patterns drop unit dimensions from `linalg.generic` only: the step
// generalizes the product and the fill, drops the dimension, and specializes both to named ops again.
//
// Before:
//   %a_rows = tensor.extract_slice %a[%b, %i * 128, 0] [1, 128, 512] : ... to tensor<1x128x512xf16>
//   linalg.batch_matmul ins(%a_rows, %b_columns : ...) outs(%c_tile : tensor<1x128x128xf32>)
// After:
//   %a_rows = tensor.extract_slice %a[%b, %i * 128, 0] [1, 128, 512] : ... to tensor<128x512xf16>
//   linalg.matmul ins(%a_rows, %b_columns : ...) outs(%c_tile : tensor<128x128xf32>)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @drop_batch_dimension(%module: !transform.any_op {transform.readonly}) {
    %named = transform.structured.match ops{["linalg.batch_matmul", "linalg.contract"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %product = transform.structured.generalize %named : (!transform.any_op) -> !transform.any_op
    %named_fill = transform.structured.match ops{["linalg.fill"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.generalize %named_fill : (!transform.any_op) -> !transform.any_op

    // The handles follow the ops through the patterns. CSE shows that the slice of a sum and the insertion before it
    // have the same sizes.
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    // A slice of a slice becomes one, and so do two insertions; `tile_to_blocks` canonicalizes what is left.
    transform.apply_patterns to %func {
      transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
    } : !transform.any_op

    %matmul = transform.structured.specialize %product : (!transform.any_op) -> !transform.any_op
    %zeros = transform.structured.specialize %fill : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
