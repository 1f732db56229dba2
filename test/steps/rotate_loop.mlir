// Fragments of sub-step s + 1 are loaded in front of the products of s. The first ones are loaded in front of the loop,
// behind a wait and a barrier of their own, and in the last sub-step for the next iteration: wait, barrier, loads,
// products. They travel as iter_args.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step rotate_loop --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @two_substeps(
// CHECK: nvgpu.device_async_wait %first {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: [[head:%.+]] = nvgpu.ldmatrix %S[%c0, [[row:%.+]], %c0]
// CHECK-NOT: nvgpu
// The group and the stage that only the head needs are carried no longer; the fragment is.
// CHECK: scf.for [[k:%.+]] = %c0 to %c128 step %c32
// CHECK-SAME: iter_args([[sum:%\w+]] = %c, [[group:%\w+]] = %second, [[here:%\w+]] = %c0, [[next:%\w+]] = %c1,
// CHECK-SAME: [[carried:%\w+]] = [[head]])
// CHECK-NOT: {{nvgpu.device_async_wait|gpu.barrier|nvgpu.ldmatrix|nvgpu.mma.sync}}
// CHECK: [[copy:%.+]] = nvgpu.device_async_copy %A
// CHECK-NEXT: [[issued:%.+]] = nvgpu.device_async_create_group [[copy]]
// CHECK-NEXT: [[second:%.+]] = nvgpu.ldmatrix %S{{\[}}[[here]], [[row]], %c16]
// CHECK-NEXT: [[d0:%.+]] = nvgpu.mma.sync([[carried]], %b, [[sum]])
// CHECK-NEXT: nvgpu.device_async_wait [[group]] {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: [[handed:%.+]] = nvgpu.ldmatrix %S{{\[}}[[next]], [[row]], %c0]
// CHECK-NEXT: [[d1:%.+]] = nvgpu.mma.sync([[second]], %b, [[d0]])
// CHECK-NEXT: scf.yield [[d1]], [[issued]], [[next]], {{%.+}}, [[handed]]
// CHECK-NOT: {{nvgpu.device_async_(wait|copy)|nvgpu.ldmatrix|nvgpu.mma|gpu.barrier}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
#stage = affine_map<(d0) -> ((d0 floordiv 32) mod 3)>
gpu.module @kernels {
  gpu.func @two_substeps(%A: memref<16x128xf16>, %S: memref<3x16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum,
                         %first: !nvgpu.device.async.token, %second: !nvgpu.device.async.token,
                             %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %lane = gpu.lane_id
    %d:5 = scf.for %k = %c0 to %c128 step %c32 iter_args(%sum = %c, %g0 = %first, %g1 = %second, %here = %c0,
        %next = %c1)
        -> (!sum, !nvgpu.device.async.token, !nvgpu.device.async.token, index, index) {
      nvgpu.device_async_wait %g0 {numGroups = 1 : i32}
      gpu.barrier
      %a0 = nvgpu.ldmatrix %S[%here, %lane, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<3x16x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%here, %lane, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<3x16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %ahead = arith.addi %k, %c64 : index
      %stage = affine.apply #stage(%ahead)
      %copy = nvgpu.device_async_copy %A[%c0, %ahead], %S[%stage, %c0, %c0], 8
          : memref<16x128xf16> to memref<3x16x32xf16, #space>
      %group = nvgpu.device_async_create_group %copy
      scf.yield %d1, %g1, %group, %next, %stage
          : !sum, !nvgpu.device.async.token, !nvgpu.device.async.token, index, index
    }
    %row = vector.extract %d#0[0] : vector<2xf32> from !sum
    vector.store %row, %C[%lane, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// One barrier, in front of the loads for the next iteration.
// CHECK-LABEL: gpu.func @three_substeps_wmma(
// CHECK: nvgpu.device_async_wait
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: scf.for {{.*}}!gpu.mma_matrix<16x16xf16, "AOp">
// CHECK-NOT: gpu.barrier
// CHECK: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: nvgpu.device_async_wait
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: gpu.subgroup_mma_load_matrix
// CHECK-NEXT: gpu.subgroup_mma_compute
// CHECK-NEXT: scf.yield
#space = #gpu.address_space<workgroup>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @kernels {
  gpu.func @three_substeps_wmma(%A: memref<16x64xf16>, %S: memref<16x64xf16, #space>, %b: !b, %c: !c,
                                %C: memref<16x16xf32>,
                                 %g: !nvgpu.device.async.token) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!c) {
      nvgpu.device_async_wait %g
      gpu.barrier
      %a0 = gpu.subgroup_mma_load_matrix %S[%c0, %c0] {leadDimension = 64 : index} : memref<16x64xf16, #space> -> !a
      %a1 = gpu.subgroup_mma_load_matrix %S[%c0, %c16] {leadDimension = 64 : index} : memref<16x64xf16, #space> -> !a
      %a2 = gpu.subgroup_mma_load_matrix %S[%c0, %c32] {leadDimension = 64 : index} : memref<16x64xf16, #space> -> !a
      %d0 = gpu.subgroup_mma_compute %a0, %b, %sum : !a, !b -> !c
      %d1 = gpu.subgroup_mma_compute %a1, %b, %d0 : !a, !b -> !c
      %d2 = gpu.subgroup_mma_compute %a2, %b, %d1 : !a, !b -> !c
      %copy = nvgpu.device_async_copy %A[%c0, %k], %S[%c0, %k], 8 : memref<16x64xf16> to memref<16x64xf16, #space>
      scf.yield %d2 : !c
    }
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
}

// -----

// The stage of a tile follows from the loop variable: the loads for the next iteration compute it anew, and share the
// row, which does not.
// CHECK-LABEL: gpu.func @stage_of_iteration(
// CHECK: [[row:%.+]] = affine.apply #{{.*}}()[%
// CHECK-NEXT: nvgpu.ldmatrix %S[%c0, [[row]], %c0]
// CHECK: scf.for [[k:%.+]] = %c0 to %c64 step %c16
// CHECK: [[stage:%.+]] = affine.apply [[map:#.+]]([[k]])
// CHECK: nvgpu.ldmatrix %S{{\[}}[[stage]], [[row]], %c16]
// CHECK: gpu.barrier
// CHECK-NEXT: [[following:%.+]] = arith.addi [[k]], %c16
// CHECK-NEXT: [[next:%.+]] = affine.apply [[map]]([[following]])
// CHECK-NEXT: nvgpu.ldmatrix %S{{\[}}[[next]], [[row]], %c0]
#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
#turn = affine_map<(d0) -> (d0 floordiv 16)>
#stage = affine_map<(d0) -> (d0 mod 2)>
#twice = affine_map<(d0) -> (d0 * 2)>
gpu.module @kernels {
  gpu.func @stage_of_iteration(%A: memref<32x64xf16>, %S: memref<2x32x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum,
                               %g: !nvgpu.device.async.token, %C: memref<32x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %lane = gpu.lane_id
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      %turn = affine.apply #turn(%k)
      %stage = affine.apply #stage(%turn)
      %row = affine.apply #twice(%lane)
      nvgpu.device_async_wait %g
      gpu.barrier
      %a0 = nvgpu.ldmatrix %S[%stage, %row, %c0] {numTiles = 4 : i32, transpose = false}
          : memref<2x32x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%stage, %row, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<2x32x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %copy = nvgpu.device_async_copy %A[%c0, %k], %S[%stage, %c0, %c0], 8
          : memref<32x64xf16> to memref<2x32x32xf16, #space>
      scf.yield %d1 : !sum
    }
    %row = vector.extract %d[0] : vector<2xf32> from !sum
    vector.store %row, %C[%lane, %c0] : memref<32x2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// A loop without products stays as it is.
// CHECK-LABEL: gpu.func @no_products(
// CHECK: scf.for
// CHECK-NEXT: nvgpu.device_async_copy
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: }
gpu.module @kernels {
  gpu.func @no_products(%A: memref<64xf16>, %S: memref<64xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    scf.for %k = %c0 to %c64 step %c16 {
      %copy = nvgpu.device_async_copy %A[%k], %S[%k], 8 : memref<64xf16>
          to memref<64xf16, #gpu.address_space<workgroup>>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @one_substep(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                        %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{tc.rotate_loop: a loop with 1 k sub-step cannot be rotated}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      nvgpu.device_async_wait %g
      gpu.barrier
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
    // expected-error@+1 {{tc.rotate_loop: more than one loop with MMA ops}}
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

// -----

#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @no_wait(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                    %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{expected one asynchronous wait and one barrier in the loop, in this order}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      gpu.barrier
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d1 : !sum
    }
    %row = vector.extract %d[0] : vector<2xf32> from !sum
    vector.store %row, %C[%c0, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// What a thread waits for is not there for the others.
#space = #gpu.address_space<workgroup>
!fragment = vector<4x2xf16>
!sum = vector<2x2xf32>
gpu.module @kernels {
  gpu.func @barrier_first(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                          %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{expected one asynchronous wait and one barrier in the loop, in this order}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      gpu.barrier
      nvgpu.device_async_wait %g
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d1 : !sum
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
  gpu.func @two_barriers(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                         %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{expected one asynchronous wait and one barrier in the loop, in this order}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      nvgpu.device_async_wait %g
      gpu.barrier
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      gpu.barrier
      scf.yield %d1 : !sum
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
  gpu.func @load_in_front(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                          %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{tc.rotate_loop: a fragment is loaded before the barrier}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      nvgpu.device_async_wait %g
      gpu.barrier
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d1 : !sum
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
  gpu.func @load_behind_wait(%S: memref<16x32xf16, #space>, %b: vector<2x2xf16>, %c: !sum, %g: !nvgpu.device.async.token,
                             %C: memref<16x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    // expected-error@+1 {{tc.rotate_loop: a fragment is loaded before the barrier}}
    %d = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c) -> (!sum) {
      nvgpu.device_async_wait %g
      %a0 = nvgpu.ldmatrix %S[%c0, %c0] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #space> -> !fragment
      gpu.barrier
      %a1 = nvgpu.ldmatrix %S[%c0, %c16] {numTiles = 4 : i32, transpose = false}
          : memref<16x32xf16, #space> -> !fragment
      %d0 = nvgpu.mma.sync(%a0, %b, %sum) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      %d1 = nvgpu.mma.sync(%a1, %b, %d0) {mmaShape = [16, 8, 16]} : (!fragment, vector<2x2xf16>, !sum) -> !sum
      scf.yield %d1 : !sum
    }
    %row = vector.extract %d[0] : vector<2xf32> from !sum
    vector.store %row, %C[%c0, %c0] : memref<16x2xf32>, vector<2xf32>
    gpu.return
  }
}
