// With three stages copies run two tiles ahead: the first two groups stand in front of the loop, an iteration waits
// until one group is in flight, and copies the tile after the next to the stage that was read an iteration ago. Copies
// behind the last tile are predicated: they read no elements.
//
// DEFINE: %{opt} = %stepladder-opt %s --step pipeline_copies --split-input-file --pipeline
// RUN: %{opt} mma_sync | FileCheck %s
// RUN: %{opt} mma_sync --set stages=2 | FileCheck %s --check-prefix=TWO
// RUN: %{opt} wmma --set prefetch=cp_async --set stages=5 | FileCheck %s --check-prefix=FIVE

// CHECK-LABEL: gpu.func @loop(
// CHECK: nvgpu.device_async_copy %A[%c0, %c0], %S[%c0, %c0, %c0], 8 :
// CHECK: [[first:%.+]] = nvgpu.device_async_create_group
// CHECK: nvgpu.device_async_copy %A[%c0, %c16], %S[%c1, %c0, %c0], 8 :
// CHECK: [[second:%.+]] = nvgpu.device_async_create_group
// CHECK-NOT: nvgpu.device_async
// CHECK: scf.for [[k:%.+]] = %c0 to %c64 step %c16
// CHECK-SAME: iter_args([[oldest:%\w+]] = [[first]], [[younger:%\w+]] = [[second]], [[here:%\w+]] = %c0,
// CHECK-SAME: [[next:%\w+]] = %c1)
// CHECK-DAG: [[more:%.+]] = arith.cmpi slt, [[k]], %c32
// CHECK: nvgpu.device_async_wait [[oldest]] {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.ldmatrix %S{{\[}}[[here]],
// CHECK: vector.store
// CHECK: [[k_ahead:%.+]] = arith.addi [[k]], %c32
// CHECK: [[stage:%.+]] = affine.apply #{{.*}}([[k_ahead]])
// CHECK: [[elements:%.+]] = arith.select [[more]], %c8{{.*}}, %c0
// CHECK: [[copy:%.+]] = nvgpu.device_async_copy %A[%c0, [[k_ahead]]], %S{{\[}}[[stage]], %c0, %c0], 8, [[elements]] :
// CHECK-NEXT: [[group:%.+]] = nvgpu.device_async_create_group [[copy]]
// CHECK-NEXT: scf.yield [[younger]], [[group]], [[next]], [[stage]] :
// CHECK-NOT: {{gpu.barrier|nvgpu.device_async_copy}}
// CHECK: // -----

// TWO: nvgpu.device_async_copy
// TWO-NEXT: nvgpu.device_async_create_group
// TWO-NOT: nvgpu.device_async_create_group
// TWO: scf.for
// TWO: nvgpu.device_async_wait %{{.*}} {numGroups = 0 : i32}
// TWO-NEXT: gpu.barrier
// TWO: nvgpu.device_async_copy %{{.*}}], 8, %
// TWO-NEXT: nvgpu.device_async_create_group

// FIVE-COUNT-4: nvgpu.device_async_create_group
// FIVE-NOT: nvgpu.device_async
// FIVE: scf.for
// FIVE: nvgpu.device_async_wait %{{.*}} {numGroups = 3 : i32}
#space = #gpu.address_space<workgroup>
#stage = affine_map<(d0) -> ((d0 floordiv 16) mod 3)>
gpu.module @kernels {
  gpu.func @loop(%A: memref<16x64xf16>, %S: memref<3x16x16xf16, #space>, %C: memref<16x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    scf.for %k = %c0 to %c64 step %c16 {
      %stage = affine.apply #stage(%k)
      %copy = nvgpu.device_async_copy %A[%c0, %k], %S[%stage, %c0, %c0], 8
          : memref<16x64xf16> to memref<3x16x16xf16, #space>
      %group = nvgpu.device_async_create_group %copy
      nvgpu.device_async_wait %group
      gpu.barrier
      %a = nvgpu.ldmatrix %S[%stage, %c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<3x16x16xf16, #space> -> vector<4x2xf16>
      %row = vector.extract %a[0] : vector<2xf16> from vector<4x2xf16>
      vector.store %row, %C[%c0, %k] : memref<16x64xf16>, vector<2xf16>
    }
    gpu.return
  }
}

// -----

// One step of the reduction only: there is no loop, and nothing to run ahead of.
// CHECK-LABEL: gpu.func @one_step(
// CHECK-NEXT: %c0
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_create_group
// CHECK-NEXT: nvgpu.device_async_wait
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: gpu.return
#space = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @one_step(%A: memref<16x16xf16>, %S: memref<3x16x16xf16, #space>) kernel {
    %c0 = arith.constant 0 : index
    %copy = nvgpu.device_async_copy %A[%c0, %c0], %S[%c0, %c0, %c0], 8
        : memref<16x16xf16> to memref<3x16x16xf16, #space>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group
    gpu.barrier
    gpu.return
  }
}
