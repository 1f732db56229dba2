// Approximates sigmoids and `1 + tanh` by the hardware's approximate exponential and reciprocal.
//
// libdevice computes tanh by an exponential, a polynomial and a selection between the two, and rounds quotients
// exactly. A result that is rounded to 8 or 16 bits needs neither. `1 + tanh(u)` of GELU is twice the sigmoid of 2 u,
// which `ex2.approx` and `rcp.approx` compute without cancellation; `1 / (1 + exp(-v))` of SiLU is a sigmoid too. GELU
// by erf is max(x, 0) minus an exponential of a polynomial times |x|. `tc.approximate_math` lists the error bounds. The
// step does not change kernels with a 32-bit result, nor any kernel with `math = libdevice`.
//
// Source: PTX ISA, "Floating Point Instructions" (errors of ex2.approx and rcp.approx).
//
// Before:
//   %t = math.tanh %u : f32
//   %s = arith.addf %t, %one : f32
//   %h = arith.mulf %x, %half : f32
//   %g = arith.mulf %h, %s : f32
// After:
//   %y = arith.mulf %u, %c : f32                          // c = -2 log2(e)
//   %e = math.exp2 %y fastmath<afn> : f32
//   %s = arith.addf %e, %one fastmath<contract> : f32
//   %r = arith.divf %one, %s fastmath<afn> : f32
//   %g = arith.mulf %x, %r fastmath<contract> : f32

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @approximate_math(%module: !transform.any_op {transform.readonly}) {
    "tc.approximate_math"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
