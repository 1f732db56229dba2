// Outlines the body of the launch to a kernel function in a gpu.module.
//
// The host function keeps the launch: the sizes of grid and block, and the arguments. Constants and index computations
// sink into the kernel first, so that only buffers are passed. Upstream orders the arguments by their first use in the
// kernel, and the manifest records the order. It also computes block and thread ids and sizes along all axes; unused
// ones are removed. Constants that later steps create, for example the zero fragments of C = AB, remain in the kernel.
//
// Before:
//   gpu.launch blocks(...) in (4, 4, 1) threads(...) in (128, 1, 1) { ... }
// After:
//   gpu.launch_func @matmul_kernel::@matmul_kernel blocks in (4, 4, 1) threads in (128, 1, 1) args(%C, %A, %B)
//   gpu.module @matmul_kernel { gpu.func @matmul_kernel(...) kernel { ... } }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_kernel(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    // Sinks constants and index arithmetic, which would otherwise become kernel arguments.
    %sunk = transform.apply_registered_pass "gpu-launch-sink-index-computations" to %module
      : (!transform.any_op) -> !transform.any_op
    %outlined = transform.apply_registered_pass "gpu-kernel-outlining" to %sunk
      : (!transform.any_op) -> !transform.any_op
    // Constants that were sunk stay in the host function too.
    transform.apply_dce to %outlined : !transform.any_op
    transform.yield %outlined : !transform.any_op
  }
}
