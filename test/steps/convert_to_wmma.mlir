// Fragments and products become WMMA operations, with the row lengths of the buffers they come from. The zeros of C = AB
// are a matrix made inside the kernel: outside, it would be passed to it.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through outline_kernel | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through convert_to_wmma | FileCheck %s
// RUN: %stepladder-opt %payloads/accumulate_f16.mlir --pipeline wmma --through convert_to_wmma | FileCheck %s --check-prefix=HALF
// RUN: %stepladder-opt %payloads/product.mlir --pipeline wmma --through convert_to_wmma | FileCheck %s --check-prefix=ZERO

// BEFORE-NOT: gpu.subgroup_mma
// BEFORE: vector.contract

// CHECK-NOT: {{vector.contract|vector<16x16}}
// CHECK: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// CHECK: [[c:%.+]] = gpu.subgroup_mma_load_matrix [[C]][{{.*}}] {leadDimension = 256 : index} : memref<256x256xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
// CHECK-COUNT-15: gpu.subgroup_mma_load_matrix [[C]][
// CHECK: [[d:%.+]]:16 = scf.for {{.*}} iter_args([[sum:%.+]] = [[c]], {{.*}} -> (!gpu.mma_matrix<16x16xf32, "COp">,
// CHECK: vector.transfer_write {{.*}} : vector<8xf16>
// CHECK: gpu.barrier
// CHECK: [[a:%\w+]] = gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 40 : index} : {{.*}} -> !gpu.mma_matrix<16x16xf16, "AOp">
// CHECK-COUNT-7: gpu.subgroup_mma_load_matrix {{.*}} "AOp">
// CHECK: [[b:%.+]] = gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 136 : index} : {{.*}} -> !gpu.mma_matrix<16x16xf16, "BOp">
// CHECK-COUNT-7: gpu.subgroup_mma_load_matrix {{.*}} "BOp">
// CHECK: gpu.subgroup_mma_compute [[a]], [[b]], [[sum]] : {{.*}} -> !gpu.mma_matrix<16x16xf32, "COp">
// CHECK-COUNT-31: gpu.subgroup_mma_compute
// CHECK-NOT: gpu.subgroup_mma_compute
// CHECK: scf.yield
// CHECK-COUNT-16: gpu.subgroup_mma_store_matrix [[d]]#{{.*}}, [[C]][{{.*}}] {leadDimension = 256 : index}
// CHECK-NOT: {{vector.contract|vector<16x16}}

// HALF: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// HALF: gpu.subgroup_mma_load_matrix [[C]][{{.*}} : memref<256x256xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
// HALF-COUNT-32: gpu.subgroup_mma_compute {{.*}} -> !gpu.mma_matrix<16x16xf16, "COp">
// HALF-COUNT-16: gpu.subgroup_mma_store_matrix

// ZERO-NOT: gpu.subgroup_mma_constant_matrix
// ZERO: gpu.func @matmul_kernel([[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}, [[C:%\w+]]: memref<256x256xf32>) kernel
// ZERO: [[zeros:%.+]] = gpu.subgroup_mma_constant_matrix %{{.*}} : !gpu.mma_matrix<16x16xf32, "COp">
// ZERO-NOT: gpu.subgroup_mma_load_matrix [[C]]
// ZERO: scf.for {{.*}} iter_args(%{{.*}} = [[zeros]], %{{.*}} = [[zeros]],
// ZERO-COUNT-16: gpu.subgroup_mma_store_matrix
