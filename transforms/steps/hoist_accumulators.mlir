module attributes {transform.with_named_sequence} {
  transform.named_sequence @hoist_accumulators(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_licm to %k_loop : !transform.any_op
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %hoisted = transform.structured.hoist_redundant_vector_transfers %func : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %hoisted {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.memref.erase_dead_alloc_and_stores %hoisted : (!transform.any_op) -> ()
    transform.yield
  }
}
