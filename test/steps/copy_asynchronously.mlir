// Loads and stores of the copies become asynchronous copies in one group, which is waited for.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through join_fragment_loads | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through copy_asynchronously | FileCheck %s
// RUN: %refused 2 %{opt} --without vectorize_copies | FileCheck %s --check-prefix=NEEDS

// BEFORE: vector.transfer_write %{{.*}} : vector<8xf16>, memref<3x128x32xf16, #gpu.address_space<workgroup>>
// BEFORE-NOT: device_async_copy

// CHECK-NOT: vector.transfer_write %{{.*}} : vector<8xf16>
// CHECK: scf.for
// CHECK-COUNT-8: nvgpu.device_async_copy %{{.*}}, 8 : memref<{{.*}}xf16> to memref<3x{{.*}}xf16, #gpu.address_space<workgroup>>
// CHECK: [[group:%.+]] = nvgpu.device_async_create_group
// CHECK-NEXT: nvgpu.device_async_wait [[group]]
// CHECK-NEXT: gpu.barrier

// NEEDS: error: step '{{multi_buffer|copy_asynchronously}}' needs vectorize_copies
