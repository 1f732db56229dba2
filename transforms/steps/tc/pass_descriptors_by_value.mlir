// Makes the TMA descriptors, which the host prepares, parameters that a lowered kernel can have.
//
// A descriptor is 128 bytes that say where a matrix lies, how large it is and in which boxes it is loaded. In the
// kernel's parameters it needs no copy in global memory and no fetch of one.
//
// Before:
//   gpu.func @matmul_kernel(%a_map: !nvgpu.tensormap.descriptor<...>, ...) kernel
// After:
//   gpu.func @matmul_kernel(%a_map: !llvm.ptr {llvm.align = 64}, ...) kernel

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pass_descriptors_by_value(%module: !transform.any_op {transform.readonly}) {
    "tc.pass_descriptors_by_value"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
