// The copies of an iteration go out a share a sub-step, behind its loads and in front of its products, in all sub-steps
// but the last; the group closes behind the last share, in front of the wait.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step interleave_copies --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// Three sub-steps, three copies: two, one, none.
// CHECK-LABEL: gpu.func @three_substeps(
// CHECK: scf.for
// CHECK-NEXT: nvgpu.ldmatrix
// CHECK-NEXT: [[first:%.+]] = nvgpu.device_async_copy %A[%c0,
// CHECK-NEXT: [[second:%.+]] = nvgpu.device_async_copy %A[%c8,
// CHECK-NEXT: nvgpu.mma.sync
// CHECK-NEXT: nvgpu.ldmatrix
// CHECK-NEXT: [[last:%.+]] = nvgpu.device_async_copy %A[%c16,
// CHECK-NEXT: nvgpu.device_async_create_group [[first]], [[second]], [[last]]
// CHECK-NEXT: nvgpu.mma.sync
// CHECK-NEXT: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: nvgpu.ldmatrix
// CHECK-NEXT: nvgpu.mma.sync
// CHECK-NEXT: scf.yield
#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @three_substeps(%A: memref<16x64xf16>, %S: memref<16x64xf16, #space>, %b: vector<2x2xf16>, %c: !sum,
                           %a: !fragment, %earlier: !nvgpu.device.async.token, %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %d:2 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c, %a0 = %a) -> (!sum, !fragment) {
      %copy0 = nvgpu.device_async_copy %A[%c0, %k], %S[%c0, %k], 8 : memref<16x64xf16> to memref<16x64xf16, #space>
      %copy1 = nvgpu.device_async_copy %A[%c8, %k], %S[%c8, %k], 8 : memref<16x64xf16> to memref<16x64xf16, #space>
      %copy2 = nvgpu.device_async_copy %A[%c16, %k], %S[%c16, %k], 8 : memref<16x64xf16> to memref<16x64xf16, #space>
      %group = nvgpu.device_async_create_group %copy0, %copy1, %copy2
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x64xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %a2 = nvgpu.ldmatrix %S[%c0, %c32] {numTiles = 4 : i32, transpose = false}
          : memref<16x64xf16, #space> -> !fragment
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      nvgpu.device_async_wait %earlier {numGroups = 1 : i32}
      gpu.barrier
      %next = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<16x64xf16, #space> -> !fragment
      %d2 = nvgpu.mma.sync(%a2, %b, %d1) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d2, %next : !sum, !fragment
    }
    %row = vector.extract %d#0[0] : vector<2xf32> from !sum
    vector.store %row, %C[%c0, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Two sub-steps: all in the first.
// CHECK-LABEL: gpu.func @two_substeps(
// CHECK: scf.for
// CHECK-NOT: {{nvgpu.mma.sync|nvgpu.device_async}}
// CHECK: nvgpu.ldmatrix
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_create_group
// CHECK-NEXT: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.device_async_copy|nvgpu.device_async_create_group}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @two_substeps(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                         %C: memref<16x2xf32>,
                         %A: memref<64xf16>, %T: memref<64xf16, #space>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      %copy0 = nvgpu.device_async_copy %A[%k], %T[%k], 8 : memref<64xf16> to memref<64xf16, #space>
      %copy1 = nvgpu.device_async_copy %A[%c0], %T[%c0], 8 : memref<64xf16> to memref<64xf16, #space>
      %group = nvgpu.device_async_create_group %copy0, %copy1
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      nvgpu.device_async_wait %g
      gpu.barrier
      scf.yield %d1 : !sum
    }
    %row = vector.extract %d[0] : vector<2xf32> from !sum
    vector.store %row, %C[%c0, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @wmma(
// CHECK: scf.for
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_create_group
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: scf.yield
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  gpu.func @wmma(%A: memref<16x64xf16>, %S: memref<16x64xf16, #space>, %b: !b, %c: !c, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!c) {
      %copy = nvgpu.device_async_copy %A[%c0, %k], %S[%c0, %k], 8 : memref<16x64xf16> to memref<16x64xf16, #space>
      %group = nvgpu.device_async_create_group %copy
      %a0 = gpu.subgroup_mma_load_matrix %S[%c0, %c0] {leadDimension = 64 : index} : memref<16x64xf16, #space> -> !a
      %d0 = gpu.subgroup_mma_compute %a0, %b, %sum : !a, !b -> !c
      %a1 = gpu.subgroup_mma_load_matrix %S[%c0, %c16] {leadDimension = 64 : index} : memref<16x64xf16, #space> -> !a
      %d1 = gpu.subgroup_mma_compute %a1, %b, %d0 : !a, !b -> !c
      scf.yield %d1 : !c
    }
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @one_substep(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                        %C: memref<16x2xf32>,
                        %A: memref<64xf16>, %T: memref<64xf16, #space>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{tc.interleave_copies: copies cannot be interleaved with 1 k sub-step}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      %copy = nvgpu.device_async_copy %A[%k], %T[%k], 8 : memref<64xf16> to memref<64xf16, #space>
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d0 : !sum
    }
    %row = vector.extract %d[0] : vector<2xf32> from !sum
    vector.store %row, %C[%c0, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @two_main_loops(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                           %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      nvgpu.device_async_wait %g
      gpu.barrier
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d1 : !sum
    }
    // expected-error@+1 {{tc.interleave_copies: more than one loop with MMA ops}}
    %e = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %d) -> (!sum) {
      nvgpu.device_async_wait %g
      gpu.barrier
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d1 : !sum
    }
    %row = vector.extract %e[0] : vector<2xf32> from !sum
    vector.store %row, %C[%c0, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}
