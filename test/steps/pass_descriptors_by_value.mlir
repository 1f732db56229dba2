// TMA descriptors become pointers, aligned to 64 bytes, of kernel and launch alike; other arguments stay what they are.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step pass_descriptors_by_value --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @matmul(
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor
// CHECK-NEXT: [[a:%.+]] = builtin.unrealized_conversion_cast [[map]] : {{.*}} to !llvm.ptr
// CHECK-NEXT: [[b:%.+]] = builtin.unrealized_conversion_cast [[map]] : {{.*}} to !llvm.ptr
// CHECK-NEXT: gpu.launch_func @kernels::@kernel
// CHECK-SAME: args(%C : memref<64xf32>, [[a]] : !llvm.ptr, [[b]] : !llvm.ptr, %n : index)
// CHECK: gpu.func @kernel(%C: memref<64xf32>, %a: !llvm.ptr {llvm.align = 64 : i64},
// CHECK-SAME: %b: !llvm.ptr {llvm.align = 64 : i64}, %n: index) kernel {
// CHECK-DAG: [[a_map:%.+]] = builtin.unrealized_conversion_cast %a : !llvm.ptr to !nvgpu.tensormap.descriptor<
// CHECK-DAG: [[b_map:%.+]] = builtin.unrealized_conversion_cast %b : !llvm.ptr to !nvgpu.tensormap.descriptor<
// CHECK: nvgpu.tma.prefetch.descriptor [[a_map]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[b_map]]
// CHECK: // -----
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
module attributes {gpu.container_module} {
  func.func @matmul(%A: memref<*xf16>, %C: memref<64xf32>, %n: index) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %map = nvgpu.tma.create.descriptor %A box[%c64, %c64] : memref<*xf16> -> !map
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%C : memref<64xf32>, %map : !map, %map : !map, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @kernel(%C: memref<64xf32>, %a: !map, %b: !map, %n: index) kernel {
      nvgpu.tma.prefetch.descriptor %a : !map
      nvgpu.tma.prefetch.descriptor %b : !map
      gpu.return
    }
  }
}

// -----

// A kernel without descriptors.
// CHECK-LABEL: func.func @no_descriptors(
// CHECK-NOT: unrealized_conversion_cast
// CHECK: args(%C : memref<64xf32>)
// CHECK: gpu.func @kernel(%C: memref<64xf32>) kernel {
// CHECK-NEXT: gpu.return
module attributes {gpu.container_module} {
  func.func @no_descriptors(%C: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%C : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @kernel(%C: memref<64xf32>) kernel {
      gpu.return
    }
  }
}
