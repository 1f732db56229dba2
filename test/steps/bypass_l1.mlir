// All asynchronous copies are marked to pass L1 by, in front of the loop and inside, predicated or not: 16 and 8. Left
// out, none is.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync --through bypass_l1
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --without bypass_l1 | FileCheck %s --check-prefix=WITHOUT

// CHECK-COUNT-16: nvgpu.device_async_copy %{{.*}}], 8 {bypassL1} :
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: scf.for
// CHECK-COUNT-8: nvgpu.device_async_copy %{{.*}}], 8, %{{\w+}} {bypassL1} :
// CHECK-NOT: nvgpu.device_async_copy

// WITHOUT-NOT: bypassL1
// WITHOUT-COUNT-24: nvgpu.device_async_copy
// WITHOUT-NOT: {{bypassL1|nvgpu.device_async_copy}}
