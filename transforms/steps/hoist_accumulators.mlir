// Keeps the warp's tile of C in registers for the whole k loop, instead of reading and writing it every iteration.
//
// The fragments of C do not move with k: they are read once in front of the loop, handed from iteration to iteration as
// iter_args, and written once behind it. For C = AB the zeros that a fill stored are forwarded to the loop, and the
// stores disappear.
//
// Source: CC'22, section 3.3 ("hoisted loads on C", listing 1).
//
// Before:
//   scf.for %k = ... {
//     %c = vector.transfer_read %C[...]
//     %d = vector.contract ... %c
//     vector.transfer_write %d, %C[...]
//   }
// After:
//   %c = vector.transfer_read %C[...]
//   %d = scf.for %k = ... iter_args(%sum = %c) { ... scf.yield }
//   vector.transfer_write %d, %C[...]

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
