// Outlines the body of the launch to a kernel function for the GPU `chip`, with subgroups of 16 threads.
//
// Upstream's outlining does not copy the attributes of the launch: the step sets the size of the subgroups on the
// kernel. The module of the kernel names the GPU, for which the next steps select instructions.
//
// Source: the passes gpu-kernel-outlining and xevm-attach-target of MLIR.
//
// Before:
//   gpu.launch blocks(...) in (2, 2, 1) threads(...) in (512, 1, 1) { ... } {intel_reqd_sub_group_size = 16 : i32}
// After:
//   gpu.launch_func @matmul_kernel::@matmul_kernel blocks in (2, 2, 1) threads in (512, 1, 1) args(%C, %A, %B)
//   gpu.module @matmul_kernel [#xevm.target<chip = "bmg">] {
//     gpu.func @matmul_kernel(...) kernel attributes {intel_reqd_sub_group_size = 16 : i32} { ... }
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op

  transform.named_sequence @outline_subgroups(%module: !transform.any_op {transform.consumed},
      %chip: !transform.any_param {transform.readonly}) -> !transform.any_op {
    %outlined = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %kernel = transform.structured.match ops{["gpu.func"]} in %outlined : (!transform.any_op) -> !transform.any_op
    %size = transform.param.constant 16 : i32 -> !transform.any_param
    transform.annotate %kernel "intel_reqd_sub_group_size" = %size : !transform.any_op, !transform.any_param
    %attached = transform.apply_registered_pass "xevm-attach-target" with options = {"chip" = %chip} to %outlined
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield %attached : !transform.any_op
  }
}
