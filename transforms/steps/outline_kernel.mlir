// Moves the body of the launch into a kernel function of its own, in a module for the GPU.
//
// What remains of the payload is the launch: sizes of grid and block, and the buffers to pass. Constants and index
// arithmetic sink into the kernel first, so that only buffers are passed; they are passed in the order in which the
// kernel first uses them, which is why the manifest lists the arguments. From here on the kernel is on its own:
// constants that later steps make, such as the zeros of C = AB as a matrix fragment, stay inside it.
//
// Before:
//   gpu.launch blocks(...) in (4, 4, 1) threads(...) in (128, 1, 1) { ... }
// After:
//   gpu.launch_func @matmul_kernel::@matmul_kernel blocks in (4, 4, 1) threads in (128, 1, 1) args(%C, %A, %B)
//   gpu.module @matmul_kernel { gpu.func @matmul_kernel(...) kernel { ... } }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_kernel(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %sunk = transform.apply_registered_pass "gpu-launch-sink-index-computations" to %module
      : (!transform.any_op) -> !transform.any_op
    %outlined = transform.apply_registered_pass "gpu-kernel-outlining" to %sunk
      : (!transform.any_op) -> !transform.any_op
    transform.yield %outlined : !transform.any_op
  }
}
