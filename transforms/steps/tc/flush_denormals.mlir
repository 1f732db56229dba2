// Lets a kernel flush subnormal numbers of f32 to zero, where functions are approximated.
//
// `ex2.approx` and `rcp.approx` keep subnormal numbers by scaling operand and result, which takes three more
// instructions each. Results of 16 bits have no use for them: the smallest normal number of f32, 2^-126, is that of
// bf16 too. LLVM reads the attribute and selects `ex2.approx.ftz` and `rcp.approx.ftz`. libdevice's exponential does
// not follow it, and is replaced.
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
