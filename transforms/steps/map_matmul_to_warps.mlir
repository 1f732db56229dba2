module attributes {transform.with_named_sequence} {
  transform.named_sequence @map_matmul_to_warps(%module: !transform.any_op {transform.readonly},
      %warp_m: !transform.param<i64> {transform.readonly}, %warp_n: !transform.param<i64> {transform.readonly}) {
    %fill = transform.structured.match ops{["linalg.fill"]} in %module : (!transform.any_op) -> !transform.any_op
    %fill_tile, %fill_warps = transform.structured.tile_using_forall %fill tile_sizes [%warp_m, %warp_n]
      (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch_fill = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}} : (!transform.any_op) -> !transform.any_op

    %matmul = transform.structured.match ops{["linalg.matmul"]} in %launch_fill
      : (!transform.any_op) -> !transform.any_op
    %tile, %warps = transform.structured.tile_using_forall %matmul tile_sizes [%warp_m, %warp_n]
      (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %mapped = transform.gpu.map_nested_forall_to_threads %launch_fill block_dims = [128, 1, 1]
      sync_after_distribute = false
      {knobs = {block_dims = "[threads, 1, 1]", sync_after_distribute = "buffers == 1"}}
      : (!transform.any_op) -> !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
