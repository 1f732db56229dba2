// Splits the reduction into steps of block_k, so that the operands of one step fit into shared memory.
//
// The loop over k is the main loop of the kernel. A deeper step means fewer barriers and longer runs of tensor-core
// instructions between them; a shallower one leaves shared memory for larger tiles, for buffers, or for another block
// on the same multiprocessor.
//
// In a pipeline of `whole_tiles` the steps have to divide k. Without, an earlier step has padded A and B to do so.
//
// Source: CC'22, algorithm 1, the loop over threadBlockK.
//
// Before:
//   linalg.matmul ins(%a_rows, %b_columns : tensor<128x512xf16>, tensor<512x128xf16>) outs(%c_tile : ...)
// After, with block_k = 32:
//   scf.for %k = 0 to 512 step 32 iter_args(%c = %c_tile) {
//     %a_tile = tensor.extract_slice %a_rows[0, %k] [128, 32]
//     %b_tile = tensor.extract_slice %b_columns[%k, 0] [32, 128]
//     linalg.matmul ins(%a_tile, %b_tile : ...) outs(%c : tensor<128x128xf32>)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @tile_k(%module: !transform.any_op {transform.readonly},
      %block_k: !transform.param<i64> {transform.readonly})
      attributes {requires = [
        {condition = "k % block_k == 0 or not whole_tiles", message = "k must be a multiple of block_k"}
      ]} {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %tile, %k_loop = transform.structured.tile_using_for %matmul tile_sizes [0, 0, %block_k]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
