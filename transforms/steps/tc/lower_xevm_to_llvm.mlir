// Lowers the kernel to the LLVM dialect, with calls of Intel's OpenCL C built-ins, for LLVM's SPIR-V back end.
//
// A buffer is one parameter, a pointer to global memory. The built-ins return blocks through stack memory, which the
// step allocates in the entry block, where LLVM promotes it to registers. Vectors of one element become scalars, since
// SPIR-V has no such vectors. The step sets the size of the sub-groups on the kernel, as the lowering of functions
// drops it.
//
// Source: the passes convert-gpu-to-llvm-spv and convert-xevm-to-llvm of MLIR.
//
// Before:
//   gpu.func @matmul_kernel(%A: memref<64x64xf16>, ...) kernel attributes {intel_reqd_sub_group_size = 16 : i32} {
//     %d = xevm.mma %a, %b, %acc {shape = <m = 8, n = 16, k = 16>, ...}
// After:
//   llvm.func spir_kernelcc @matmul_kernel(%A: !llvm.ptr<1>, ...) attributes {intel_reqd_sub_group_size = 16 : i32} {
//     %d = llvm.call spir_funccc @_Z38intel_sub_group_f16_f16_matrix_mad_k16Dv8_sDv8_iDv8_f(%a, %b, %acc)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_xevm_to_llvm(%module: !transform.any_op {transform.readonly}) {
    %code = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    %0 = transform.apply_registered_pass "convert-gpu-to-llvm-spv" with options = {"use-64bit-index" = "true"} to %code
      : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "convert-scf-to-cf" to %0 : (!transform.any_op) -> !transform.any_op
    %2 = transform.apply_registered_pass "expand-strided-metadata" to %1 : (!transform.any_op) -> !transform.any_op
    %3 = transform.apply_registered_pass "lower-affine" to %2 : (!transform.any_op) -> !transform.any_op
    %4 = transform.apply_registered_pass "convert-vector-to-llvm" to %3 : (!transform.any_op) -> !transform.any_op
    %5 = transform.apply_registered_pass "convert-to-llvm" to %4 : (!transform.any_op) -> !transform.any_op
    %6 = transform.apply_registered_pass "reconcile-unrealized-casts" to %5 : (!transform.any_op) -> !transform.any_op
    %7 = transform.apply_registered_pass "convert-xevm-to-llvm" to %6 : (!transform.any_op) -> !transform.any_op
    %8 = transform.apply_registered_pass "cse" to %7 : (!transform.any_op) -> !transform.any_op

    %kernel = transform.structured.match ops{["llvm.func"]} attributes {gpu.kernel} in %8
      : (!transform.any_op) -> !transform.any_op
    %size = transform.param.constant 16 : i32 -> !transform.any_param
    transform.annotate %kernel "intel_reqd_sub_group_size" = %size : !transform.any_op, !transform.any_param
    "tc.hoist_allocas"(%8) : (!transform.any_op) -> ()
    "tc.unwrap_vectors"(%8) : (!transform.any_op) -> ()
    "tc.pass_pointers"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
