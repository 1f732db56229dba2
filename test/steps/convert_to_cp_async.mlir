// Every copy of eight elements is one asynchronous copy of 16 bytes; one group holds those in front of a barrier, which
// a wait for it precedes. No tile passes through registers.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step convert_to_cp_async --split-input-file | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wmma --set prefetch=cp_async --step convert_to_cp_async \
// RUN:   --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @copies(
// CHECK-NOT: vector.transfer
// CHECK: [[first:%.+]] = nvgpu.device_async_copy %A[%c0, %c0], %S[%i, %c0, %c0], 8 : memref<16x64xf16>
// CHECK-SAME: to memref<2x16x16xf16, #gpu.address_space<workgroup>>
// CHECK: [[second:%.+]] = nvgpu.device_async_copy %A[%c0, %c8], %S[%i, %c0, %c8], 8 :
// CHECK: [[last:%.+]] = nvgpu.device_async_copy %B[%c8, %c0], %T[%i, %c8, %c0], 8 :
// CHECK-NEXT: [[group:%.+]] = nvgpu.device_async_create_group [[first]], [[second]], [[last]]
// CHECK-NEXT: nvgpu.device_async_wait [[group]]
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: {{nvgpu.device_async|vector.transfer|gpu.barrier}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @copies(%A: memref<16x64xf16>, %B: memref<64x16xf16>, %S: memref<2x16x16xf16, #space>,
                  %T: memref<2x16x16xf16, #space>, %i: index) {
  %pad = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %0 = vector.transfer_read %A[%c0, %c0], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
  vector.transfer_write %0, %S[%i, %c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<2x16x16xf16, #space>
  %1 = vector.transfer_read %A[%c0, %c8], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
  vector.transfer_write %1, %S[%i, %c0, %c8] {in_bounds = [true]} : vector<8xf16>, memref<2x16x16xf16, #space>
  %2 = vector.transfer_read %B[%c8, %c0], %pad {in_bounds = [true]} : memref<64x16xf16>, vector<8xf16>
  vector.transfer_write %2, %T[%i, %c8, %c0] {in_bounds = [true]} : vector<8xf16>, memref<2x16x16xf16, #space>
  gpu.barrier
  return
}

// -----

// In a kernel too. What leaves shared memory, or is shorter than 4 bytes, is no asynchronous copy.
// CHECK-LABEL: gpu.func @kernel(
// CHECK: nvgpu.device_async_copy %A[%c0], %S[%c0], 8 :
// CHECK: gpu.barrier
// CHECK: vector.transfer_write {{.*}}, %C
// CHECK: vector.transfer_write {{.*}}, %S
// CHECK-NOT: nvgpu.device_async
#space = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @kernel(%A: memref<64xf16>, %C: memref<64xf16>, %S: memref<64xf16, #space>) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %0 = vector.transfer_read %A[%c0], %pad {in_bounds = [true]} : memref<64xf16>, vector<8xf16>
    vector.transfer_write %0, %S[%c0] {in_bounds = [true]} : vector<8xf16>, memref<64xf16, #space>
    gpu.barrier
    %1 = vector.transfer_read %S[%c0], %pad {in_bounds = [true]} : memref<64xf16, #space>, vector<8xf16>
    vector.transfer_write %1, %C[%c0] {in_bounds = [true]} : vector<8xf16>, memref<64xf16>
    %2 = vector.transfer_read %A[%c0], %pad {in_bounds = [true]} : memref<64xf16>, vector<1xf16>
    vector.transfer_write %2, %S[%c0] {in_bounds = [true]} : vector<1xf16>, memref<64xf16, #space>
    gpu.return
  }
}
