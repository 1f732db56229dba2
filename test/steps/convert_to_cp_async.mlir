// Every copy of eight elements is one asynchronous copy of 16 bytes; one group holds the eight of a thread, and a wait for
// it stands in front of the barrier. No tile passes through registers.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir
// RUN: %{opt} --pipeline mma_sync --through merge_ldmatrix | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --pipeline mma_sync --through convert_to_cp_async | FileCheck %s
// RUN: %{opt} --pipeline wmma --set prefetch=cp_async --through convert_to_wmma | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --pipeline wmma --set prefetch=cp_async --through convert_to_cp_async | FileCheck %s

// BEFORE-NOT: nvgpu.device_async
// BEFORE: scf.for
// BEFORE: [[x:%.+]] = vector.transfer_read %A[{{.*}} : memref<256x128xf16>, vector<8xf16>
// BEFORE: vector.transfer_write [[x]], %{{.*}} : vector<8xf16>, memref<{{.*}}, #gpu.address_space<workgroup>>
// BEFORE-NOT: nvgpu.device_async

// CHECK: scf.for
// CHECK-NOT: vector.transfer_write
// CHECK: [[first:%.+]] = nvgpu.device_async_copy %A[%{{.*}}], %{{\w+}}[%{{.*}}], 8 : memref<256x128xf16> to memref<{{[23]}}x128x{{32|40}}xf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-3: nvgpu.device_async_copy %A[
// CHECK-COUNT-3: nvgpu.device_async_copy %B[
// CHECK: [[last:%.+]] = nvgpu.device_async_copy %B[%{{.*}}], %{{\w+}}[%{{.*}}], 8 : memref<128x256xf16> to memref<{{[23]}}x32x{{128|136}}xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT: [[group:%.+]] = nvgpu.device_async_create_group [[first]], {{.*}}, [[last]]
// CHECK-NEXT: nvgpu.device_async_wait [[group]]
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: {{nvgpu.device_async|vector.transfer_write|gpu.barrier}}
// CHECK: scf.yield
