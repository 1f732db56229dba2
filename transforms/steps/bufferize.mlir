module attributes {transform.with_named_sequence} {
  transform.named_sequence @bufferize(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.structured.eliminate_empty_tensors %func : !transform.any_op
    %buffered = transform.bufferization.one_shot_bufferize %func : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %buffered {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %buffered : !transform.any_op
    transform.apply_patterns to %buffered {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.memref.erase_dead_alloc_and_stores %buffered : (!transform.any_op) -> ()
    transform.yield
  }
}
