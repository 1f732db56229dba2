// Tiles have two stages, those of values three where the softmax is overlapped. The first are copied in front of the
// loop; an iteration waits for its own, and copies the next ones, if there are any. One barrier is left. A loop with
// one barrier is refused.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/attention.mlir --step copy_tiles_ahead \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-DAG: [[of_two:#.+]] = affine_map<(d0) -> ((d0 floordiv 128) mod 2)>
// CHECK-DAG: [[of_four:#.+]] = affine_map<(d0) -> ((d0 floordiv 128) mod 4)>
// CHECK-LABEL: func.func @two_tiles(
// CHECK: [[keys:%.+]] = memref.alloc() {keys} : memref<2x16x8xf16, #gpu.address_space<workgroup>>
// CHECK: [[values:%.+]] = memref.alloc() {values} : memref<4x16x8xf16, #gpu.address_space<workgroup>>
// CHECK: nvgpu.device_async_copy %k[%c0, %c0]
// CHECK-NEXT: nvgpu.device_async_copy %v[%c0, %c0]
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: scf.for [[i:%.+]] = %c0 to %end step %c128
// CHECK: affine.apply [[of_four]]([[i]])
// CHECK: [[place:%.+]] = affine.apply [[of_two]]([[i]])
// CHECK: [[own:%.+]] = memref.subview [[keys]][[[place]], 0, 0]
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: [[next:%.+]] = arith.addi [[i]], %c128
// CHECK-NEXT: [[is_inside:%.+]] = arith.cmpi ult, [[next]], %end
// CHECK-NEXT: scf.if [[is_inside]] {
// CHECK: [[there:%.+]] = affine.apply [[of_two]]([[next]])
// CHECK: [[ahead:%.+]] = memref.subview [[keys]][[[there]], 0, 0]
// CHECK: nvgpu.device_async_copy %k[[[next]], %c0], [[ahead]]
// CHECK-NEXT: nvgpu.device_async_copy %v[[[next]], %c0],
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: memref.load [[own]]
// CHECK-NOT: gpu.barrier
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @two_tiles(%k: memref<256x8xf16>, %v: memref<256x8xf16>, %end: index, %y: memref<1xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %keys = memref.alloc() {keys} : memref<16x8xf16, #space>
    %values = memref.alloc() {values} : memref<16x8xf16, #space>
    scf.for %i = %c0 to %end step %c128 {
      %0 = nvgpu.device_async_copy %k[%i, %c0], %keys[%c0, %c0], 8 : memref<256x8xf16> to memref<16x8xf16, #space>
      %1 = nvgpu.device_async_copy %v[%i, %c0], %values[%c0, %c0], 8 : memref<256x8xf16> to memref<16x8xf16, #space>
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      gpu.barrier
      %2 = memref.load %keys[%c1, %c0] : memref<16x8xf16, #space>
      %3 = memref.load %values[%c1, %c0] : memref<16x8xf16, #space>
      %4 = arith.addf %2, %3 : f16
      memref.store %4, %y[%c0] : memref<1xf16>
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @one_barrier(%k: memref<256x8xf16>, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %keys = memref.alloc() {keys} : memref<16x8xf16, #space>
    // expected-error@+1 {{tc.copy_tiles_ahead: 1 commits and 1 barriers; accepted: one and two}}
    scf.for %i = %c0 to %end step %c1 {
      %0 = nvgpu.device_async_copy %k[%i, %c0], %keys[%c0, %c0], 8 : memref<256x8xf16> to memref<16x8xf16, #space>
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      gpu.barrier
    }
    gpu.terminator
  }
  return
}
