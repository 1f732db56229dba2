// Fragments run one k sub-step ahead of their products: those of the first stand in front of the loop and come with the
// iteration, those of the second are loaded before the products of the first, and the next tile's first before the last
// products, behind the wait and the barrier. block_k = 32 makes two sub-steps; with one there is nothing to rotate.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through rotate_loop | FileCheck %s
// RUN: %{opt} --through lower_transfers --without rotate_loop,spread_copies | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --through rotate_loop --set block_m=64 --set warp_m=32 --set block_k=64 | FileCheck %s --check-prefix=FOUR
// RUN: %refused 1 %{opt} --set block_k=16 | FileCheck %s --check-prefix=ONE

// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-NOT: nvgpu.ldmatrix
// CHECK: scf.for {{.*}} iter_args(
// CHECK-COUNT-8: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_create_group
// CHECK-NOT: nvgpu.mma.sync
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-NOT: nvgpu.ldmatrix
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK: nvgpu.device_async_wait
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-NOT: nvgpu.device_async
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK: scf.yield
// CHECK-NOT: nvgpu.ldmatrix

// WITHOUT: scf.for
// WITHOUT: nvgpu.device_async_wait
// WITHOUT-NEXT: gpu.barrier
// WITHOUT-COUNT-16: nvgpu.ldmatrix
// WITHOUT: scf.yield

// FOUR: scf.for
// FOUR-COUNT-3: nvgpu.ldmatrix

// ONE: error: step 'rotate_loop': {{.*}}a loop with 1 k sub-step cannot be rotated
