// The load of iteration i + 1 is issued in iteration i and carried to the next one, which stores it: the first load
// stands in front of the loop, the last store and products behind it, and the loop is one iteration shorter.
//
// RUN: %stepladder-opt %s --pipeline wmma --step prefetch_to_registers --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @two_stages(
// CHECK: [[first:%.+]] = vector.transfer_read %A[%c0, %c0]
// CHECK-NOT: vector.transfer
// CHECK: [[last:%.+]]:2 = scf.for [[k:%.+]] = %c0 to %c48 step %c16
// CHECK-SAME: iter_args([[sum:%.+]] = %c, [[carried:%.+]] = [[first]])
// CHECK: vector.transfer_write [[carried]], %S[
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: vector.transfer
// CHECK: [[d:%.+]] = gpu.subgroup_mma_compute {{.*}}, [[sum]]
// CHECK-NOT: gpu.barrier
// CHECK: [[ahead:%.+]] = arith.addi [[k]], %c16
// CHECK: [[next:%.+]] = vector.transfer_read %A[%c0, [[ahead]]]
// CHECK: scf.yield [[d]], [[next]]
// CHECK-NEXT: }
// CHECK-NEXT: vector.transfer_write [[last]]#1, %S[%c1, %c0, %c0]
// CHECK-NEXT: gpu.barrier
// CHECK: gpu.subgroup_mma_compute {{.*}}, [[last]]#0
// CHECK-NOT: {{gpu.barrier|vector.transfer}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
#stage = affine_map<(d0) -> ((d0 floordiv 16) mod 2)>
gpu.module @kernels {
  gpu.func @two_stages(%A: memref<16x64xf16>, %S: memref<2x16x16xf16, #space>, %b: !b, %c: !c,
                       %C: memref<16x16xf32>) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!c) {
      %stage = affine.apply #stage(%k)
      %tile = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
      vector.transfer_write %tile, %S[%stage, %c0, %c0] {in_bounds = [true]}
          : vector<8xf16>, memref<2x16x16xf16, #space>
      gpu.barrier
      %a = gpu.subgroup_mma_load_matrix %S[%stage, %c0, %c0] {leadDimension = 16 : index}
          : memref<2x16x16xf16, #space> -> !a
      %next = gpu.subgroup_mma_compute %a, %b, %sum : !a, !b -> !c
      scf.yield %next : !c
    }
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

// One stage: store, barrier, products, barrier, and the load of the next tile.
// CHECK-LABEL: gpu.func @one_stage(
// CHECK: scf.for
// CHECK-NEXT: vector.transfer_write
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: gpu.barrier
// CHECK: vector.transfer_read %A
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: vector.transfer_write
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  gpu.func @one_stage(%A: memref<16x64xf16>, %S: memref<16x16xf16, #space>, %b: !b, %c: !c,
                      %C: memref<16x16xf32>) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!c) {
      %tile = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
      vector.transfer_write %tile, %S[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
      gpu.barrier
      %a = gpu.subgroup_mma_load_matrix %S[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16, #space> -> !a
      %next = gpu.subgroup_mma_compute %a, %b, %sum : !a, !b -> !c
      gpu.barrier
      scf.yield %next : !c
    }
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

#space = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @nested(%A: memref<16x64xf16>, %S: memref<16x16xf16, #space>, %condition: i1) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{cannot find stage 0 ops for pipelining}}
    scf.for %k = %c0 to %c64 step %c16 {
      %tile = vector.transfer_read %A[%c0, %k], %pad {in_bounds = [true]} : memref<16x64xf16>, vector<8xf16>
      scf.if %condition {
        vector.transfer_write %tile, %S[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
      }
      gpu.barrier
    }
    gpu.return
  }
}

// -----

#space = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @no_copy() kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{no shared memory copy}}
    scf.for %k = %c0 to %c64 step %c16 {
      gpu.barrier
    }
    gpu.return
  }
}
