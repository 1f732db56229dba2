// Unrolls loops around matmuls.
//
// A bundle lists its launches in order, so that each iteration of a loop becomes separate launches. Equal kernels are
// compiled once. Offsets of slices that depend on the iteration become constants.
//
// Source: loop unrolling, as in upstream's `scf` utilities.
//
// Before:
//   %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %first) -> (tensor<64x64xf16>) {
//     %next = linalg.matmul ins(%x, %w : ...) ...
//     scf.yield %next : tensor<64x64xf16>
//   }
// After:
//   %1 = linalg.matmul ins(%first, %w : ...) ...
//   %2 = linalg.matmul ins(%1, %w : ...) ...
//   %y = linalg.matmul ins(%2, %w : ...) ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @unroll_loops(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    "tc.unroll_loops"(%module) {at_most = 256, at_most_in_all = 4096} : (!transform.any_op) -> ()
    %clean = transform.apply_registered_pass "canonicalize" to %module : (!transform.any_op) -> !transform.any_op
    transform.yield %clean : !transform.any_op
  }
}
