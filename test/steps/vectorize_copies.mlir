// Every run of eight elements is one 128-bit access: four of A and four of B for each thread. Left out, the copies
// become loops of scalar loads and stores.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// DEFINE: %{left_out} = --without vectorize_copies,multi_buffer,prefetch_to_registers
// RUN: %{opt} --through map_matmul_to_warps | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through vectorize_copies | FileCheck %s
// RUN: %{opt} --through vectorize_copies --set block_k=64 | FileCheck %s --check-prefix=DEEP
// RUN: %{opt} --through map_to_fragments %{left_out} | FileCheck %s --check-prefix=WITHOUT

// BEFORE-NOT: vector<
// BEFORE: linalg.copy {operand_a} ins(%{{.*}} : memref<4x8xf16,

// CHECK-NOT: linalg.copy
// CHECK: scf.for
// CHECK: [[a:%.+]] = vector.transfer_read [[A:%\w+]][%{{.*}}], %{{.*}} {in_bounds = [true]} : memref<256x128xf16>, vector<8xf16>
// CHECK: vector.transfer_write [[a]], [[SHARED_A:%\w+]][%{{.*}}] {in_bounds = [true]} : vector<8xf16>, memref<128x32xf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-3: vector.transfer_write %{{.*}}, [[SHARED_A]]
// CHECK: [[b:%.+]] = vector.transfer_read [[B:%\w+]][%{{.*}}], %{{.*}} {in_bounds = [true]} : memref<128x256xf16>, vector<8xf16>
// CHECK: vector.transfer_write [[b]], [[SHARED_B:%\w+]][%{{.*}}] {in_bounds = [true]} : vector<8xf16>, memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-3: vector.transfer_write %{{.*}}, [[SHARED_B]]
// CHECK-NOT: {{vector.transfer|linalg.copy}}
// CHECK: gpu.barrier
// CHECK: linalg.matmul

// DEEP: scf.for
// DEEP-COUNT-16: vector.transfer_write %{{.*}} : vector<8xf16>,
// DEEP-NOT: vector.transfer_write
// DEEP: gpu.barrier

// WITHOUT-NOT: vector<8xf16>
// WITHOUT: scf.for
// WITHOUT: scf.for
// WITHOUT: scf.for
// WITHOUT: [[x:%.+]] = memref.load %{{.*}} : memref<256x128xf16>
// WITHOUT: memref.store [[x]], %{{.*}} : memref<128x32xf16, #gpu.address_space<workgroup>>
// WITHOUT-NOT: vector<8xf16>
