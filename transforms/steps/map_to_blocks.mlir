module attributes {transform.with_named_sequence} {
  transform.named_sequence @map_to_blocks(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %func generate_gpu_launch : (!transform.any_op) -> !transform.any_op
    %mapped = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.bufferization.buffer_loop_hoisting %mapped : !transform.any_op
    transform.apply_patterns to %mapped {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %mapped : !transform.any_op
    transform.yield
  }
}
