module attributes {transform.with_named_sequence} {
  transform.named_sequence @vectorize_copies(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %a = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_row, %a_rows = transform.structured.tile_using_for %a tile_sizes [1, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %a_rows {factor = 4 : i64, knobs = {factor = "block_m * block_k / (8 * threads)"}}
      : !transform.any_op
    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_row, %b_rows = transform.structured.tile_using_for %b tile_sizes [1, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %b_rows {factor = 4 : i64, knobs = {factor = "block_k * block_n / (8 * threads)"}}
      : !transform.any_op
    %rows = transform.structured.match ops{["linalg.copy"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %rows : !transform.any_op

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
