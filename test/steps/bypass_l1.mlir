// All asynchronous copies are marked to pass L1 by, in front of the loop and inside, predicated or not.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step bypass_l1 | FileCheck %s

// CHECK-LABEL: gpu.func @copies(
// CHECK: nvgpu.device_async_copy %{{.*}}], 8 {bypassL1} :
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: scf.for
// CHECK-NEXT: nvgpu.device_async_copy %{{.*}}], 8, %n {bypassL1} :
// CHECK-NOT: {{bypassL1|nvgpu.device_async_copy}}
#space = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @copies(%A: memref<16x64xf16>, %S: memref<16x64xf16, #space>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %0 = nvgpu.device_async_copy %A[%c0, %c0], %S[%c0, %c0], 8 : memref<16x64xf16> to memref<16x64xf16, #space>
    scf.for %k = %c16 to %c64 step %c16 {
      %1 = nvgpu.device_async_copy %A[%c0, %k], %S[%c0, %k], 8, %n : memref<16x64xf16> to memref<16x64xf16, #space>
    }
    gpu.return
  }
}
