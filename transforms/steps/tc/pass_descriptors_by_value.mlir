// Converts the TMA descriptors that a kernel takes to pointer parameters, which a lowered kernel can have.
//
// The host encodes a descriptor, 128 bytes that state the address, shape and box of a matrix. As a kernel parameter it
// needs no copy in global memory and no fetch from there. `lower_to_inline_ptx` completes the passing by value.
//
// Before:
//   gpu.func @matmul_kernel(%A_map: !nvgpu.tensormap.descriptor<...>, ...) kernel
// After:
//   gpu.func @matmul_kernel(%A_map: !llvm.ptr {llvm.align = 64}, ...) kernel

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @pass_descriptors_by_value(%module: !transform.any_op {transform.readonly}) {
    "tc.pass_descriptors_by_value"(%module) : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
