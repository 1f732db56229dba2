// Flushes subnormal f32 values to zero in kernels with approximated functions.
//
// `ex2.approx` and `rcp.approx` support subnormals by scaling operand and result, which takes three more
// instructions each. 16-bit results do not need them: the smallest normal value of bf16 is that of f32, 2^-126. LLVM
// reads the attribute and selects `ex2.approx.ftz` and `rcp.approx.ftz`. libdevice's exponential does not follow the
// attribute, and the step replaces it.
//
// Source: LLVM's language reference, function attribute "denormal-fp-math-f32".
//
// Before:
//   llvm.func @matmul_kernel(...) attributes {nvvm.kernel, ...}
// After:
//   llvm.func @matmul_kernel(...) attributes {nvvm.kernel, ...,
//     passthrough = [["denormal-fp-math-f32", "preserve-sign,preserve-sign"]]}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @flush_denormals(%kernels: !transform.any_op {transform.readonly}) {
    "tc.flush_denormals"(%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
