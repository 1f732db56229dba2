// A kernel gets the attribute `nvvm.minctasm`, unless the knob is 0. A function that is no kernel and a kernel of unknown
// block size are refused.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline mma_sync --step set_min_blocks_per_sm --split-input-file \
// DEFINE:   --verify-diagnostics
// RUN: %{opt} --set min_blocks_per_sm=3 | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wmma --step set_min_blocks_per_sm --split-input-file --verify-diagnostics \
// RUN:   --set min_blocks_per_sm=3 | FileCheck %s
// RUN: sed '/^\/\/ -----/,$d' %s > %t.mlir
// RUN: %stepladder-opt %t.mlir --pipeline mma_sync --step set_min_blocks_per_sm | FileCheck %s --check-prefix=ZERO

// CHECK-LABEL: gpu.func @sized_kernel(
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 3 : i32}
// CHECK-NEXT: gpu.return

// ZERO-LABEL: gpu.func @sized_kernel(
// ZERO-SAME: kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
gpu.module @kernels {
  gpu.func @sized_kernel(%A: memref<16xf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{tc.set_min_blocks_per_sm: the op is not a kernel function}}
  gpu.func @called_by_a_kernel(%A: memref<16xf16>) {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{tc.set_min_blocks_per_sm: the kernel's block size is unknown}}
  gpu.func @kernel_of_any_size(%A: memref<16xf16>) kernel {
    gpu.return
  }
}
