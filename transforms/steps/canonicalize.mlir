// Canonicalizes functions and eliminates their common subexpressions (CSE).
//
// Steps include it to clean up after a rewrite: constants fold, the index arithmetic of tiles and loops becomes one
// expression, and later steps recognize accesses to the same address. CSE exposes further canonicalization patterns,
// for example on views of one buffer: both run again until nothing changes.
//
// The step takes handles to functions, not to the module: after `outline_kernel` it cleans up the kernel and leaves the
// host function alone.
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
    } {apply_cse} : !transform.any_op
    transform.yield
  }
}
