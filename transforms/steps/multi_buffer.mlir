module attributes {transform.with_named_sequence} {
  transform.named_sequence @multi_buffer(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["vectorize_copies"], left_out = {buffers = 1 : i64}} {
    %tiles = transform.structured.match ops{["memref.alloc"]} in %module
      : (!transform.any_op) -> !transform.op<"memref.alloc">
    %buffers = transform.memref.multibuffer %tiles {factor = 2 : i64, skip_analysis, knobs = {factor = "buffers"}}
      : (!transform.op<"memref.alloc">) -> !transform.any_op
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
