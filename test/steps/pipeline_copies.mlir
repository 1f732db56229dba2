// With three buffers copies run two tiles ahead: the first two groups stand in front of the loop, an iteration waits until
// one group is in flight, and copies the tile after the next into the place that was read an iteration ago. Copies behind
// the last tile are predicated: they read no elements. Left out, an iteration waits for its own copies.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --through pipeline_copies --pipeline
// RUN: %{opt} mma_sync | FileCheck %s
// RUN: %{opt} wmma --set prefetch=cp_async --set stages=3 | FileCheck %s
// RUN: %{opt} mma_sync --set stages=2 | FileCheck %s --check-prefix=TWO
// RUN: %{opt} wmma --set prefetch=cp_async --set stages=5 | FileCheck %s --check-prefix=FIVE
// RUN: %{opt} mma_sync --without pipeline_copies,rotate_loop,interleave_copies | FileCheck %s --check-prefix=WITHOUT
// One step of the reduction only: there is no loop, and nothing to run ahead of.
// RUN: %stepladder payload matmul --m 256 --n 256 --k 32 | %stepladder-opt - --pipeline mma_sync --through pipeline_copies | FileCheck %s --check-prefix=ONE-STEP

// CHECK: gpu.func @matmul_kernel
// CHECK: [[A:%\w+]] = memref.view {{.*}} to memref<3x128x
// CHECK: [[B:%\w+]] = memref.view {{.*}} to memref<3x32x
// CHECK-COUNT-4: nvgpu.device_async_copy %A[%{{.*}}], [[A]][%c0, %{{.*}}], 8 :
// CHECK-COUNT-4: nvgpu.device_async_copy %B[%{{.*}}], [[B]][%c0, %{{.*}}], 8 :
// CHECK: [[first:%.+]] = nvgpu.device_async_create_group
// CHECK-COUNT-4: nvgpu.device_async_copy %A[%{{.*}}], [[A]][%c1, %{{.*}}], 8 :
// CHECK-COUNT-4: nvgpu.device_async_copy %B[%{{.*}}], [[B]][%c1, %{{.*}}], 8 :
// CHECK: [[second:%.+]] = nvgpu.device_async_create_group
// CHECK-NOT: nvgpu.device_async
// CHECK: scf.for [[k:%\w+]] = %c0 to %c128 step %c32 iter_args({{.*}}[[oldest:%\w+]] = [[first]], [[younger:%\w+]] = [[second]], [[here:%\w+]] = %c0, [[next:%\w+]] = %c1)
// CHECK-DAG: [[more:%.+]] = arith.cmpi slt, [[k]], %c64
// CHECK: nvgpu.device_async_wait [[oldest]] {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: {{(nvgpu.ldmatrix|gpu.subgroup_mma_load_matrix) .*\[}}[[here]],
// CHECK: {{nvgpu.mma.sync|gpu.subgroup_mma_compute}}
// CHECK: [[k_ahead:%.+]] = arith.addi [[k]], %c64
// CHECK: [[place:%.+]] = affine.apply #{{.*}}([[k_ahead]])
// CHECK: [[elements:%.+]] = arith.select [[more]], %c8{{.*}}, %c0
// CHECK-COUNT-4: nvgpu.device_async_copy %A[%{{.*}}], [[A]]{{\[}}[[place]], %{{.*}}], 8, [[elements]] :
// CHECK-COUNT-4: nvgpu.device_async_copy %B[%{{.*}}], [[B]]{{\[}}[[place]], %{{.*}}], 8, [[elements]] :
// CHECK-NEXT: [[group:%.+]] = nvgpu.device_async_create_group
// CHECK-NOT: {{gpu.barrier|nvgpu.device_async}}
// CHECK: scf.yield {{.*}}, [[younger]], [[group]], [[next]], [[place]] :
// CHECK-NOT: nvgpu.device_async

// TWO-COUNT-8: nvgpu.device_async_copy
// TWO-NEXT: nvgpu.device_async_create_group
// TWO-NOT: nvgpu.device_async
// TWO: scf.for
// TWO: nvgpu.device_async_wait %{{\w+}} {numGroups = 0 : i32}
// TWO-NEXT: gpu.barrier
// TWO-COUNT-8: nvgpu.device_async_copy %{{.*}}], 8, %
// TWO-NEXT: nvgpu.device_async_create_group

// FIVE-COUNT-4: nvgpu.device_async_create_group
// FIVE-NOT: nvgpu.device_async
// FIVE: scf.for
// FIVE: nvgpu.device_async_wait %{{\w+}} {numGroups = 3 : i32}

// WITHOUT: gpu.func @matmul_kernel
// WITHOUT-NOT: nvgpu.device_async
// WITHOUT: scf.for
// WITHOUT-COUNT-8: nvgpu.device_async_copy %{{.*}}], 8 :
// WITHOUT-NEXT: [[group:%.+]] = nvgpu.device_async_create_group
// WITHOUT-NEXT: nvgpu.device_async_wait [[group]]
// WITHOUT-NEXT: gpu.barrier
// WITHOUT-COUNT-64: nvgpu.mma.sync
// WITHOUT-NEXT: scf.yield

// ONE-STEP-NOT: scf.for
// ONE-STEP-COUNT-8: nvgpu.device_async_copy
// ONE-STEP-NEXT: nvgpu.device_async_create_group
// ONE-STEP-NEXT: nvgpu.device_async_wait
// ONE-STEP-NEXT: gpu.barrier
// ONE-STEP-COUNT-64: nvgpu.mma.sync
// ONE-STEP-NOT: nvgpu.mma.sync
