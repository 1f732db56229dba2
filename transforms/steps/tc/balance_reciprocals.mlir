// Computes half of the reciprocals of an epilogue's sigmoids by multiplications and additions.
//
// `ex2.approx` and `rcp.approx` are instructions of the special function unit, which computes 16 results per cycle and
// multiprocessor; other f32 instructions have a throughput of 128. Each of them takes as long as eight others. The two
// of a GELU or SiLU thus take as long as 16 instructions, next to about 9 others. If half of the reciprocals are
// computed otherwise, the special function unit is busy as long as 12 instructions, and there are about as many others.
// `approximate_math` creates the quotients, within its error bounds; `tc.balance_reciprocals` lists the error bounds of
// its reciprocals.
//
// Left out: all reciprocals are computed by `rcp.approx`.
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
