// Every asynchronous copy goes past L1, those that pipelining predicated too.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through bypass_l1 | FileCheck %s
// RUN: %{opt} --through rotate_loop --set block_k=64 --without bypass_l1 | FileCheck %s --check-prefix=WITHOUT

// CHECK-COUNT-24: nvgpu.device_async_copy {{.*}} {bypassL1}
// CHECK-NOT: nvgpu.device_async_copy

// WITHOUT-NOT: bypassL1
