// Approximates the exponentials of a softmax, and multiplies them by the reciprocal of their sum.
//
// An exponential of libdevice takes nine instructions, and an exactly rounded quotient as many; the rest of a softmax
// takes ten per element. A result that is rounded to 16 bits needs neither. `tc.approximate_softmax` lists the error
// bounds. The step does not change functions with a 32-bit result, nor any function with `math = libdevice`.
//
// Source: PTX ISA, "Floating Point Instructions" (error of ex2.approx).
//
// Before:
//   %e = linalg.generic ins(%x, %max) { %d = arith.subf %in, %m; %v = math.exp %d }
//   %s = linalg.generic ins(%e) { arith.addf }
//   %y = linalg.generic ins(%e, %s) { %q = arith.divf %in, %sum; arith.truncf %q }
// After:
//   %e = linalg.generic ins(%x, %max) { arith.subf; arith.mulf by log2(e); math.exp2 fastmath<afn> }
//   %s = linalg.generic ins(%e) { arith.addf }
//   %y = linalg.generic ins(%e, %s) { %r = arith.divf %one, %sum; %q = arith.mulf %in, %r; arith.truncf %q }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @approximate_softmax(%module: !transform.any_op {transform.readonly}) {
    "tc.approximate_softmax"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
