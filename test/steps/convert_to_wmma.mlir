// Fragments and products become WMMA operations, with the row lengths of the buffers they come from. Copies stay.
//
// RUN: %stepladder-opt %s --pipeline wmma --step convert_to_wmma --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @accumulate(
// CHECK-NOT: {{vector.contract|vector<16x16}}
// CHECK: [[c:%.+]] = gpu.subgroup_mma_load_matrix %C[%c16, %c0] {leadDimension = 16 : index} : memref<32x16xf32>
// CHECK-SAME: -> !gpu.mma_matrix<16x16xf32, "COp">
// CHECK: [[d:%.+]] = scf.for {{.*}} iter_args([[sum:%.+]] = [[c]]) -> (!gpu.mma_matrix<16x16xf32, "COp">)
// CHECK: vector.transfer_write %x, %A{{.*}} : vector<8xf16>
// CHECK: gpu.barrier
// CHECK: [[a:%.+]] = gpu.subgroup_mma_load_matrix %A{{.*}} {leadDimension = 40 : index}
// CHECK-SAME: -> !gpu.mma_matrix<16x16xf16, "AOp">
// CHECK: [[b:%.+]] = gpu.subgroup_mma_load_matrix %B{{.*}} {leadDimension = 24 : index}
// CHECK-SAME: -> !gpu.mma_matrix<16x16xf16, "BOp">
// CHECK: [[e:%.+]] = gpu.subgroup_mma_compute [[a]], [[b]], [[sum]] : {{.*}} -> !gpu.mma_matrix<16x16xf32, "COp">
// CHECK: scf.yield [[e]]
// CHECK: gpu.subgroup_mma_store_matrix [[d]], %C[%c16, %c0] {leadDimension = 16 : index}
// CHECK-NOT: {{vector.contract|vector<16x16}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
gpu.module @kernels {
  gpu.func @accumulate(%C: memref<32x16xf32>, %A: memref<2x16x40xf16, #space>, %B: memref<2x16x24xf16, #space>,
                       %x: vector<8xf16>) kernel {
    %zero = arith.constant 0.0 : f16
    %zero_c = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c = vector.transfer_read %C[%c16, %c0], %zero_c {in_bounds = [true, true]} : memref<32x16xf32>, vector<16x16xf32>
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (vector<16x16xf32>) {
      vector.transfer_write %x, %A[%c0, %c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<2x16x40xf16, #space>
      gpu.barrier
      %0 = vector.transfer_read %A[%c0, %c0, %c0], %zero {in_bounds = [true, true]}
          : memref<2x16x40xf16, #space>, vector<16x16xf16>
      %1 = vector.transfer_read %B[%c0, %c0, %c0], %zero {in_bounds = [true, true]}
          : memref<2x16x24xf16, #space>, vector<16x16xf16>
      %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>} %0, %1, %sum : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      scf.yield %2 : vector<16x16xf32>
    }
    vector.transfer_write %d, %C[%c16, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<32x16xf32>
    gpu.return
  }
}

// -----

// The zeros of C = AB are a matrix made inside the kernel. Sums of f16 are matrices of f16.
// CHECK-LABEL: gpu.func @half_from_zero(
// CHECK: [[zeros:%.+]] = gpu.subgroup_mma_constant_matrix %{{.*}} : !gpu.mma_matrix<16x16xf16, "COp">
// CHECK-NOT: gpu.subgroup_mma_load_matrix %C
// CHECK: gpu.subgroup_mma_compute %{{.*}}, %{{.*}}, [[zeros]] : {{.*}} -> !gpu.mma_matrix<16x16xf16, "COp">
// CHECK: gpu.subgroup_mma_store_matrix
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
gpu.module @kernels {
  gpu.func @half_from_zero(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf16>) kernel {
    %zero = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<16x16xf16>
    %c0 = arith.constant 0 : index
    %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf16>
    vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
    gpu.return
  }
}

// -----

// Fragments of column-major operands are loaded as such, and the products say so.
// CHECK-LABEL: gpu.func @columns(
// CHECK-DAG: [[a:%.+]] = gpu.subgroup_mma_load_matrix %A{{.*}} {leadDimension = 24 : index, transpose}{{.*}}"AOp"
// CHECK-DAG: [[b:%.+]] = gpu.subgroup_mma_load_matrix %B{{.*}} {leadDimension = 40 : index, transpose}{{.*}}"BOp"
// CHECK: gpu.subgroup_mma_compute [[a]], [[b]], %{{.*}} {a_transpose, b_transpose}
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
gpu.module @kernels {
  gpu.func @columns(%A: memref<16x24xf16>, %B: memref<16x40xf16>, %C: memref<16x16xf32>) kernel {
    %zero = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<16x16xf32>
    %c0 = arith.constant 0 : index
    %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x24xf16>, vector<16x16xf16>
    %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x40xf16>, vector<16x16xf16>
    %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.return
  }
}

// -----

// Products whose elements are of bf16 stay marked.
// CHECK-LABEL: gpu.func @marked(
// CHECK: gpu.subgroup_mma_compute %{{.*}} {of_bf16}
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
gpu.module @kernels {
  gpu.func @marked(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf32>) kernel {
    %zero = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<16x16xf32>
    %c0 = arith.constant 0 : index
    %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %0, %1, %zeros {of_bf16} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.return
  }
}

// -----

// expected-error@unknown {{A and B must have the same element type: f16, bf16 or i8}}
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
gpu.module @kernels {
  gpu.func @f32(%C: memref<32x16xf32>, %A: memref<2x16x40xf32, #space>, %B: memref<2x16x24xf32, #space>,
                 %x: vector<8xf32>) kernel {
    %zero = arith.constant 0.0 : f32
    %zero_c = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c = vector.transfer_read %C[%c16, %c0], %zero_c {in_bounds = [true, true]} : memref<32x16xf32>, vector<16x16xf32>
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (vector<16x16xf32>) {
      vector.transfer_write %x, %A[%c0, %c0, %c0] {in_bounds = [true]} : vector<8xf32>, memref<2x16x40xf32, #space>
      gpu.barrier
      %0 = vector.transfer_read %A[%c0, %c0, %c0], %zero {in_bounds = [true, true]}
          : memref<2x16x40xf32, #space>, vector<16x16xf32>
      %1 = vector.transfer_read %B[%c0, %c0, %c0], %zero {in_bounds = [true, true]}
          : memref<2x16x24xf32, #space>, vector<16x16xf32>
      %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>} %0, %1, %sum : vector<16x16xf32>, vector<16x16xf32> into vector<16x16xf32>
      scf.yield %2 : vector<16x16xf32>
    }
    vector.transfer_write %d, %C[%c16, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<32x16xf32>
    gpu.return
  }
}
