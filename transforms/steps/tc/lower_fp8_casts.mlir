// Lowers casts to and from fp8 to conversion instructions, or to integer arithmetic.
//
// LLVM has no fp8, and upstream lowers casts of it for other GPUs only. From sm_89 on, an instruction rounds two f32
// values to fp8; it saturates to the largest finite value, where `arith.truncf` gives NaN (f8E4M3FN) or infinity
// (f8E5M2). The encoding of these follows that of the largest finite value, so that the step adds 1 to the bits,
// unless a clamp in the payload bounds the values. On older GPUs, integer arithmetic rounds. Extensions are integer
// arithmetic on all GPUs.
//
// Before:
//   %q = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>
// After, from sm_89 on, without a clamp:
//   %bytes = nvvm.convert.f32x2.to.f8x2 %x1, %x0 {rnd = rn, sat = satfinite} : vector<2xi8> (f8E4M3FN)
//   %pair = vector.bitcast %bytes : vector<2xi8> to vector<1xi16>
//   %m = math.absf %x0 : f32
//   %beyond = arith.cmpf ogt, %m, %c464 : f32
//   %one = arith.extui %beyond : i1 to i16
//   ...
//   %both = arith.addi %pair, %ones : i16
//   %q = arith.bitcast %bits : vector<2xi8> to vector<2xf8E4M3FN>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_fp8_casts(%kernels: !transform.any_op {transform.readonly}) {
    "tc.lower_fp8_casts"(%kernels) {instruction = 1 : i64,
        knobs = {instruction = "1 if target in ['sm_89', 'sm_90', 'sm_90a'] else 0"}}
      : (!transform.any_op) -> ()
    transform.yield
  }
}
