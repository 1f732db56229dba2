// Keeps the warp tile of C in accumulator registers for the whole k loop.
//
// The addresses of the fragments of C do not depend on k. Instead of a load and a store in each iteration, a fragment
// is loaded once before the loop, carried by an iter_arg, and stored once after the loop. For C = AB the zeros of the
// fill are forwarded to the loop, and the fill's stores are erased.
//
// Left out: every k step loads the fragments of C from memory and stores them back.
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
//   %d = scf.for %k = ... iter_args(%acc = %c) { ... scf.yield }
//   vector.transfer_write %d, %C[...]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @hoist_accumulators(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Moves addresses that do not depend on k before the loop, and then each pair of a read and a write of the same
    // address out of the loop, as an iter_arg.
    %hoisted = transform.structured.hoist_redundant_vector_transfers %func : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %hoisted {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    // C = AB: the stores of zeros whose values are forwarded to the loop.
    transform.memref.erase_dead_alloc_and_stores %hoisted : (!transform.any_op) -> ()
    transform.apply_cse to %hoisted : !transform.any_op
    transform.yield
  }
}
