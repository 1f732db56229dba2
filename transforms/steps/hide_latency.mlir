module attributes {transform.with_named_sequence} {
  transform.named_sequence @hide_latency(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["stage_in_shared_memory", "vectorize_copies"]} {
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    %pipelined = transform.nvgpu.pipeline_shared_memory_copies failures(propagate) %k_loop
      {depth = 1 : i64, peel_epilogue} : (!transform.any_op) -> !transform.any_op
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
