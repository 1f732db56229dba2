module attributes {transform.with_named_sequence} {
  transform.named_sequence @map_copies_to_threads(%module: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_slice, %a_threads = transform.structured.tile_using_forall %a num_threads [32, 4]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * 8 / block_k, block_k / 8]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch_a = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}} : (!transform.any_op) -> !transform.any_op

    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %launch_a
      : (!transform.any_op) -> !transform.any_op
    %b_slice, %b_threads = transform.structured.tile_using_forall %b num_threads [8, 16]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * 8 / block_n, block_n / 8]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %launch_b = transform.gpu.map_nested_forall_to_threads %launch_a block_dims = [128, 1, 1]
      sync_after_distribute = true {knobs = {block_dims = "[threads, 1, 1]"}} : (!transform.any_op) -> !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
