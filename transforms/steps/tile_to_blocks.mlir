module attributes {transform.with_named_sequence} {
  transform.named_sequence @tile_to_blocks(%module: !transform.any_op {transform.readonly},
      %block_m: !transform.param<i64> {transform.readonly}, %block_n: !transform.param<i64> {transform.readonly}) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %tile, %blocks = transform.structured.tile_using_forall %matmul tile_sizes [%block_m, %block_n]
      (mapping = [#gpu.block<y>, #gpu.block<x>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fill = transform.structured.match ops{["linalg.fill"]} in %module : (!transform.any_op) -> !transform.any_op
    %fill_tile, %blocks_2 = transform.structured.fuse_into_containing_op %fill into %blocks
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
