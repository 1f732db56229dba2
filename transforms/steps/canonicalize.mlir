// Canonicalizes functions and merges their common subexpressions (CSE).
//
// Steps include it to clean up after a rewrite: constants fold, index arithmetic of tiles and loops becomes one
// expression, and accesses to the same address become visible as such to later steps. CSE merges values on which
// further canonicalization patterns match, for example views of the same buffer, hence the second round of patterns.
//
// Takes handles to functions, not to the module: after `outline_kernel` a step cleans up the kernel and does not change
// the host function.
//
// Before:
//   %1 = arith.addi %0, %c0 : index
//   %2 = vector.load %A[%1]
//   %3 = vector.load %A[%0]
// After:
//   %1 = vector.load %A[%0]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @canonicalize(%functions: !transform.any_op {transform.readonly}) {
    transform.apply_patterns to %functions {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %functions : !transform.any_op
    transform.apply_patterns to %functions {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
