// Vectorizes the copies: each 16-byte vector of a thread is one 128-bit load and one 128-bit store.
//
// Vectorized copies of f16 take an eighth of the instructions of element-wise copies and access whole sectors. In CC'22
// this step has the largest gain (a factor of five on their card). The rows of a thread are unrolled, so that later
// steps can issue all loads before the first store.
//
// Left out: `map_to_fragments` lowers the copies to scalar loops.
//
// Source: CC'22, section 3.5.
//
// Before:
//   linalg.copy ins(%a_slice : memref<4x8xf16, ...>) outs(%shared_a_slice : ...)
// After:
//   %0 = vector.transfer_read %A[%row, %column] : memref<512x512xf16>, vector<8xf16>
//   vector.transfer_write %0, %shared_a[%r, %c] : vector<8xf16>, memref<128x32xf16, #gpu.address_space<workgroup>>
//   ... three more rows ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @vectorize_copies(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    // A thread copies a_rows rows of one vector each; unrolled, each row is a copy of static shape 1 x run.
    %a = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_row, %a_rows = transform.structured.tile_using_for %a tile_sizes [1, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %a_rows {factor = 4 : i64, knobs = {factor = "a_rows"}} : !transform.any_op
    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_row, %b_rows = transform.structured.tile_using_for %b tile_sizes [1, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %b_rows {factor = 4 : i64, knobs = {factor = "b_rows"}} : !transform.any_op
    // Each copy of a row becomes one transfer_read and one transfer_write.
    %rows = transform.structured.match ops{["linalg.copy"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %rows : !transform.any_op

    // Transfers address the tiles themselves, not views of them, as vectors of rank 1.
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.vector.cast_away_vector_leading_one_dim
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
