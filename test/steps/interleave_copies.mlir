// The copies of an iteration go out a share a sub-step, behind its loads and in front of its products, in all sub-steps
// but the last; the group closes behind the last share, in front of the wait. Left out, all come first.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --set block_k=64 --through interleave_copies --pipeline
// RUN: %{opt} mma_sync | FileCheck %s
// RUN: %{opt} wmma --set prefetch=cp_async --set stages=3 | FileCheck %s --check-prefix=WMMA
// RUN: %{opt} mma_sync --set block_k=32 | FileCheck %s --check-prefix=TWO
// RUN: %{opt} mma_sync --without interleave_copies | FileCheck %s --check-prefix=WITHOUT

// Four sub-steps, 16 copies: six, six, four, none.
// CHECK: scf.for
// CHECK-NOT: {{nvgpu.device_async|nvgpu.mma.sync}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-COUNT-6: nvgpu.device_async_copy
// CHECK-NOT: {{nvgpu.device_async|nvgpu.ldmatrix}}
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.device_async|nvgpu.mma.sync}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-COUNT-6: nvgpu.device_async_copy
// CHECK-NOT: {{nvgpu.device_async|nvgpu.ldmatrix}}
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.device_async|nvgpu.mma.sync}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-COUNT-4: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_create_group
// CHECK-NOT: {{nvgpu.device_async|nvgpu.ldmatrix}}
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.device_async_copy|nvgpu.mma.sync|nvgpu.ldmatrix}}
// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.mma.sync|nvgpu.ldmatrix}}
// CHECK: scf.yield

// WMMA: scf.for
// WMMA-COUNT-8: gpu.subgroup_mma_load_matrix
// WMMA-COUNT-6: nvgpu.device_async_copy
// WMMA-NOT: nvgpu.device_async
// WMMA-COUNT-16: gpu.subgroup_mma_compute
// WMMA-NOT: nvgpu.device_async
// WMMA-COUNT-8: gpu.subgroup_mma_load_matrix
// WMMA-COUNT-6: nvgpu.device_async_copy
// WMMA-NOT: nvgpu.device_async
// WMMA-COUNT-16: gpu.subgroup_mma_compute
// WMMA-COUNT-8: gpu.subgroup_mma_load_matrix
// WMMA-COUNT-4: nvgpu.device_async_copy
// WMMA-NEXT: nvgpu.device_async_create_group
// WMMA-COUNT-16: gpu.subgroup_mma_compute
// WMMA-NOT: gpu.subgroup_mma
// WMMA: nvgpu.device_async_wait
// WMMA-NEXT: gpu.barrier
// WMMA-NOT: nvgpu.device_async

// Two sub-steps: all eight in the first.
// TWO: scf.for
// TWO-COUNT-8: nvgpu.ldmatrix
// TWO-NOT: nvgpu.mma.sync
// TWO-COUNT-8: nvgpu.device_async_copy
// TWO-NEXT: nvgpu.device_async_create_group
// TWO-COUNT-32: nvgpu.mma.sync
// TWO: nvgpu.device_async_wait
// TWO-NOT: nvgpu.device_async

// WITHOUT: scf.for
// WITHOUT-NOT: nvgpu.ldmatrix
// WITHOUT-COUNT-16: nvgpu.device_async_copy
// WITHOUT-NEXT: nvgpu.device_async_create_group
// WITHOUT-COUNT-8: nvgpu.ldmatrix
// WITHOUT-NOT: nvgpu.device_async_copy
