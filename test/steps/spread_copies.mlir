// With block_k = 64 there are four k sub-steps: the sixteen copies of an iteration are issued six, six and four before the
// products of the first three, and their group is closed before the wait of the last.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync --set block_k=64
// RUN: %{opt} --through spread_copies | FileCheck %s
// RUN: %{opt} --through lower_transfers --without spread_copies | FileCheck %s --check-prefix=WITHOUT
// RUN: %refused 2 %{opt} --without rotate_loop | FileCheck %s --check-prefix=NEEDS

// CHECK: scf.for
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-COUNT-6: nvgpu.device_async_copy
// CHECK-NOT: nvgpu.device_async_copy
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK: nvgpu.ldmatrix
// CHECK-COUNT-6: nvgpu.device_async_copy
// CHECK-NOT: nvgpu.device_async_copy
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK: nvgpu.ldmatrix
// CHECK-COUNT-4: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_create_group
// CHECK-NOT: nvgpu.device_async_copy
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK: nvgpu.device_async_wait
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: nvgpu.device_async_copy

// WITHOUT: scf.for
// WITHOUT-COUNT-16: nvgpu.device_async_copy
// WITHOUT: nvgpu.device_async_create_group
// WITHOUT: nvgpu.mma.sync

// NEEDS: error: step 'spread_copies' needs rotate_loop
