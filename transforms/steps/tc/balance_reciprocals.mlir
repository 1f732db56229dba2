// Computes half of the reciprocals of an epilogue's sigmoids by multiplications and additions.
//
// `ex2.approx` and `rcp.approx` are instructions of the special function unit, which computes 16 results a cycle and
// multiprocessor; other instructions on f32 have a throughput of 128. One of them takes as long as eight others: the
// two of a GELU or SiLU as long as 16, and its other instructions are about 9. Without half of the reciprocals, the
// former take as long as 12, and there are about as many of the latter. `approximate_math`
// has made the quotients, with error bounds of their own; `tc.balance_reciprocals` lists those of its reciprocals.
//
// Source: Moroz et al., "Modified fast inverse square root and reciprocal approximations" (integer estimates and tuned
// constants of Newton's iteration).
//
// Before:
//   %r = arith.divf %ones, %d fastmath<afn> : vector<2xf32>
// After, for the second element %b of %d; the first one's quotient stays:
//   %i = arith.subi %magic, %bits : i32                       // of the bits of min(%b, 1.9 x 2^126)
//   %e = arith.bitcast %i : i32 to f32
//   %p = arith.mulf %b, %e fastmath<contract> : f32
//   %q = arith.subf %two, %p fastmath<contract> : f32         // a constant slightly above 2
//   %f = arith.mulf %e, %q : f32                              // and a second time with %f
//   %r = vector.from_elements %a, %g : vector<2xf32>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @balance_reciprocals(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.balance_reciprocals"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
