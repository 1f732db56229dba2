module attributes {transform.with_named_sequence} {
  transform.named_sequence @tile_reduction(%module: !transform.any_op {transform.readonly},
      %block_k: !transform.param<i64> {transform.readonly}) {
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
