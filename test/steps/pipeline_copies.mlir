// Two tiles are on their way before the loop, a third is requested in every iteration, predicated behind the last one, and
// an iteration leaves one group in flight when it waits. One buffer is too few.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through pipeline_copies | FileCheck %s
// RUN: %{opt} --through lower_transfers --without pipeline_copies,rotate_loop,spread_copies | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --through pipeline_copies --set buffers=4 | FileCheck %s --check-prefix=FOUR
// RUN: %refused 2 %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --set latency=asynchronous --set buffers=1 | FileCheck %s --check-prefix=ONE

// CHECK: gpu.func
// CHECK-COUNT-8: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_create_group
// CHECK-COUNT-8: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_create_group
// CHECK: scf.for
// CHECK: [[more:%.+]] = arith.cmpi slt
// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.mma.sync
// CHECK: [[elements:%.+]] = arith.select [[more]], %c8, %c0
// CHECK-COUNT-8: nvgpu.device_async_copy %{{.*}}, 8, [[elements]]
// CHECK: nvgpu.device_async_create_group
// CHECK-NEXT: scf.yield

// WITHOUT: gpu.func
// WITHOUT-NOT: nvgpu.device_async_copy
// WITHOUT: scf.for
// WITHOUT: nvgpu.device_async_create_group
// WITHOUT-NEXT: nvgpu.device_async_wait

// FOUR: nvgpu.device_async_wait %{{.*}} {numGroups = 2 : i32}

// ONE: error: step 'pipeline_copies' requires buffers >= 2, but buffers = 1
