// The load of the next tile stands behind the barrier that ends the copies and in front of the first read of shared
// memory, with the index arithmetic that it needs.
//
// RUN: %stepladder-opt %s --pipeline wmma --step hoist_prefetch --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @one_barrier(
// CHECK: scf.for [[k:%.+]] = %c0 to %c48 step %c16
// CHECK-NEXT: vector.transfer_write
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: [[next:%.+]] = arith.addi [[k]], %c16
// CHECK-NEXT: [[column:%.+]] = affine.apply #{{.*}}([[next]])
// CHECK-NEXT: [[tile:%.+]] = vector.transfer_read %A[%c0, [[column]]]
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: [[sum:%.+]] = gpu.subgroup_mma_compute
// CHECK-NEXT: scf.yield [[sum]], [[tile]]
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
#column = affine_map<(d0) -> (d0 + 8)>
gpu.module @kernels {
  gpu.func @one_barrier(%A: memref<16x64xf16>, %S: memref<16x16xf16, #space>, %b: !b, %c: !c, %first: vector<8xf16>,
                        %C: memref<16x16xf32>) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %d:2 = scf.for %k = %c0 to %c48 step %c16 iter_args(%sum = %c, %tile = %first) -> (!c, vector<8xf16>) {
      vector.transfer_write %tile, %S[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
      gpu.barrier
      %a = gpu.subgroup_mma_load_matrix %S[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16, #space> -> !a
      %next_sum = gpu.subgroup_mma_compute %a, %b, %sum : !a, !b -> !c
      %next = arith.addi %k, %c16 : index
      %column = affine.apply #column(%next)
      %next_tile = vector.transfer_read %A[%c0, %column], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
      scf.yield %next_sum, %next_tile : !c, vector<8xf16>
    }
    vector.transfer_write %d#1, %S[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
    gpu.subgroup_mma_store_matrix %d#0, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

// With one stage a second barrier ends the computation.
// CHECK-LABEL: gpu.func @two_barriers(
// CHECK: scf.for
// CHECK-NEXT: vector.transfer_write
// CHECK-NEXT: gpu.barrier
// CHECK: vector.transfer_read %A
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: scf.yield
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
#column = affine_map<(d0) -> (d0 + 8)>
gpu.module @kernels {
  gpu.func @two_barriers(%A: memref<16x64xf16>, %S: memref<16x16xf16, #space>, %b: !b, %c: !c, %first: vector<8xf16>,
                         %C: memref<16x16xf32>) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %d:2 = scf.for %k = %c0 to %c48 step %c16 iter_args(%sum = %c, %tile = %first) -> (!c, vector<8xf16>) {
      vector.transfer_write %tile, %S[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
      gpu.barrier
      %a = gpu.subgroup_mma_load_matrix %S[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16, #space> -> !a
      %next_sum = gpu.subgroup_mma_compute %a, %b, %sum : !a, !b -> !c
      gpu.barrier
      %next = arith.addi %k, %c16 : index
      %column = affine.apply #column(%next)
      %next_tile = vector.transfer_read %A[%c0, %column], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
      scf.yield %next_sum, %next_tile : !c, vector<8xf16>
    }
    vector.transfer_write %d#1, %S[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
    gpu.subgroup_mma_store_matrix %d#0, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

// A load that is used in its own iteration stays where it is.
// CHECK-LABEL: func.func @no_prefetch(
// CHECK: scf.for
// CHECK-NEXT: [[shared:%.+]] = vector.transfer_read %S
// CHECK-NEXT: vector.transfer_write [[shared]], %C
// CHECK-NEXT: [[tile:%.+]] = vector.transfer_read %A
// CHECK-NEXT: vector.transfer_write [[tile]], %S
// CHECK-NEXT: }
func.func @no_prefetch(%A: memref<64xf16>, %S: memref<64xf16, #gpu.address_space<workgroup>>, %C: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : f16
  scf.for %i = %c0 to %c64 step %c8 {
    %shared = vector.transfer_read %S[%i], %pad {in_bounds = [true]}
        : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.transfer_write %shared, %C[%i] {in_bounds = [true]} : vector<8xf16>, memref<64xf16>
    %tile = vector.transfer_read %A[%i], %pad {in_bounds = [true]} : memref<64xf16>, vector<8xf16>
    vector.transfer_write %tile, %S[%i] {in_bounds = [true]}
        : vector<8xf16>, memref<64xf16, #gpu.address_space<workgroup>>
  }
  return
}

// -----

func.func @loads_from_c(%C: memref<64xf16>, %S: memref<64xf16, #gpu.address_space<workgroup>>, %first: vector<8xf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : f16
  %last = scf.for %i = %c0 to %c64 step %c8 iter_args(%tile = %first) -> (vector<8xf16>) {
    vector.transfer_write %tile, %S[%i] {in_bounds = [true]}
        : vector<8xf16>, memref<64xf16, #gpu.address_space<workgroup>>
    %read = vector.transfer_read %S[%c0], %pad {in_bounds = [true]}
        : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.transfer_write %read, %C[%i] {in_bounds = [true]} : vector<8xf16>, memref<64xf16>
    // expected-error@+1 {{tc.hoist_prefetch: the kernel writes the memory that this load reads, so it cannot move}}
    %next = vector.transfer_read %C[%i], %pad {in_bounds = [true]} : memref<64xf16>, vector<8xf16>
    scf.yield %next : vector<8xf16>
  }
  return
}

// -----

// A load from shared memory that the next iteration uses is no prefetch.
// CHECK-LABEL: func.func @from_shared_memory(
// CHECK: scf.for
// CHECK-NEXT: [[now:%.+]] = vector.transfer_read %S[%{{.*}}]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: vector.transfer_write
// CHECK-NEXT: [[next:%.+]] = vector.transfer_read %S[%c8]
// CHECK-NEXT: scf.yield [[next]]
func.func @from_shared_memory(%S: memref<64xf16, #gpu.address_space<workgroup>>, %C: memref<64xf16>,
    %first: vector<8xf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %pad = arith.constant 0.0 : f16
  scf.for %i = %c0 to %c64 step %c8 iter_args(%before = %first) -> (vector<8xf16>) {
    %now = vector.transfer_read %S[%i], %pad {in_bounds = [true]}
        : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    %sum = arith.addf %now, %before : vector<8xf16>
    vector.transfer_write %sum, %C[%i] {in_bounds = [true]} : vector<8xf16>, memref<64xf16>
    %next = vector.transfer_read %S[%c8], %pad {in_bounds = [true]}
        : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    scf.yield %next : vector<8xf16>
  }
  return
}
