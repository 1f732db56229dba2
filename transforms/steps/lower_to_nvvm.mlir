// Lowers the kernel to the NVVM dialect, which maps one to one to LLVM IR with NVIDIA's intrinsics.
//
// Structured loops become branches, indices become arithmetic on 64 bits, buffers become bare pointers, and each WMMA
// operation becomes its intrinsic. Thread and block indices are known not to be negative: their divisions become
// unsigned, which for powers of two are shifts.
//
// Before:
//   %d = gpu.subgroup_mma_compute %a, %b, %c : ... -> !gpu.mma_matrix<16x16xf32, "COp">
// After:
//   %d = nvvm.wmma.mma %a0, ..., %b0, ..., %c0, ... {eltypeA = f16, eltypeB = f32, m = 16, n = 16, k = 16, ...}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_to_nvvm(%module: !transform.any_op {transform.consumed},
      %target: !transform.any_param {transform.readonly}) -> !transform.any_op {
    %targeted = transform.apply_registered_pass "nvvm-attach-target"
      with options = {"chip" = %target, "O" = 3 : i64} to %module
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    %kernels = transform.structured.match ops{["gpu.module"]} in %targeted : (!transform.any_op) -> !transform.any_op
    %0 = transform.apply_registered_pass "expand-strided-metadata" to %kernels
      : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "lower-affine" to %0 : (!transform.any_op) -> !transform.any_op

    // What the ranges of thread and block indices decide: comparisons with zero go, and signed divisions with them.
    %2 = transform.apply_registered_pass "int-range-optimizations" to %1 : (!transform.any_op) -> !transform.any_op
    %3 = transform.apply_registered_pass "canonicalize" to %2 : (!transform.any_op) -> !transform.any_op
    %4 = transform.apply_registered_pass "arith-unsigned-when-equivalent" to %3
      : (!transform.any_op) -> !transform.any_op
    %5 = transform.apply_registered_pass "cse" to %4 : (!transform.any_op) -> !transform.any_op

    %6 = transform.apply_registered_pass "convert-scf-to-cf" to %5 : (!transform.any_op) -> !transform.any_op
    %7 = transform.apply_registered_pass "convert-nvgpu-to-nvvm" to %6 : (!transform.any_op) -> !transform.any_op
    %8 = transform.apply_registered_pass "convert-gpu-to-nvvm"
      with options = {"use-bare-ptr-memref-call-conv" = true, "index-bitwidth" = 64 : i64} to %7
      : (!transform.any_op) -> !transform.any_op
    %9 = transform.apply_registered_pass "canonicalize" to %8 : (!transform.any_op) -> !transform.any_op
    %10 = transform.apply_registered_pass "cse" to %9 : (!transform.any_op) -> !transform.any_op
    %11 = transform.apply_registered_pass "reconcile-unrealized-casts" to %10
      : (!transform.any_op) -> !transform.any_op
    transform.yield %targeted : !transform.any_op
  }
}
