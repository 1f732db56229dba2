// Boxes are no higher than the matrix that they are loaded from. What they leave of a tile is zero from the start.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wgmma --step shrink_tma_boxes --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set block_m=40 | FileCheck %s --check-prefix=SHORT

// 16 rows of A in tiles of 64: in each of two stages, 48 rows of eight units of 16 bytes are zeros.
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> (s0 floordiv 8 + 16)>
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 8) * 64)>
// CHECK-LABEL: func.func @few_rows(
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<8xf16>
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c16, %c64]
// CHECK-SAME: -> <tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: [[a:%.+]] = memref.alloc() {operand_a} : memref<2x1x64x64xf16
// CHECK: nvgpu.tma.prefetch.descriptor [[a_map]]
// All threads write the zeros, for TMA and the tensor cores to see.
// CHECK: scf.for [[unit:%.+]] = %{{.*}} to %c384 step %c128 {
// CHECK-DAG: [[row:%.+]] = affine.apply #[[to_row]]()[[[unit]]]
// CHECK-DAG: [[column:%.+]] = affine.apply #[[to_column]]()[[[unit]]]
// CHECK: vector.store [[zeros]], [[a]][%c0, %{{.*}}, [[row]], [[column]]] {alignment = 16 : i64}
// CHECK-NEXT: vector.store [[zeros]], [[a]][%c1, %{{.*}}, [[row]], [[column]]] {alignment = 16 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: gpu.barrier
// 16 rows of A and 64 of B, of 128 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c10240
// CHECK: [[tile:%.+]] = memref.subview [[a]]{{\[}}%stage, 0, 0, 0] [1, 1, 64, 64]
// CHECK: [[rows:%.+]] = memref.subview [[tile]][0, 0] [16, 64] [1, 1]
// CHECK-NEXT: nvgpu.tma.async.load [[a_map]][%k, %c0], %{{.*}}[%stage] to [[rows]] :
// CHECK: nvgpu.tma.async.load [[b_map]][%c0, %k], %{{.*}}[%stage] to
// CHECK-NOT: {{nvgpu.tma.async.load|vector.store}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#view = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @few_rows(%A: memref<16x512xf16>, %B: memref<512x64xf16>, %leader: i1, %stage: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 16384 : index
  %any_a = memref.cast %A : memref<16x512xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*xf16> -> !map
  %any_b = memref.cast %B : memref<512x64xf16> to memref<*xf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %b = memref.alloc() {operand_b} : memref<2x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    nvgpu.tma.prefetch.descriptor %a_map : !map
    gpu.barrier
    scf.if %leader {
      nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : !barriers
      %a_tile = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<2x1x64x64xf16, #space> to memref<64x64xf16, #view, #space>
      nvgpu.tma.async.load %a_map[%k, %c0], %full[%stage] to %a_tile : !map, !barriers
          -> memref<64x64xf16, #view, #space>
      %b_tile = memref.subview %b[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<2x1x64x64xf16, #space> to memref<64x64xf16, #view, #space>
      nvgpu.tma.async.load %b_map[%c0, %k], %full[%stage] to %b_tile : !map, !barriers
          -> memref<64x64xf16, #view, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A k of 24: rows of B. Two boxes of a stage are two loads, each of 40 rows or 5120 bytes less.
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> (s0 floordiv 8 + 24)>
// CHECK-LABEL: func.func @short_k(
// CHECK: box[%c24, %c64]
// CHECK: [[b:%.+]] = memref.alloc() {operand_b}
// CHECK: scf.for [[unit:%.+]] = %{{.*}} to %c320 step %c128 {
// CHECK: [[row:%.+]] = affine.apply #[[to_row]]()[[[unit]]]
// CHECK: vector.store %{{.*}}, [[b]][%{{.*}}, %c0, [[row]], %{{.*}}]
// CHECK-NEXT: vector.store %{{.*}}, [[b]][%{{.*}}, %c1, [[row]], %{{.*}}]
// CHECK: nvvm.fence.proxy
// Where blocks of a cluster meet, the zeros are written in front of their arrival.
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c6144
// CHECK: [[rows:%.+]] = memref.subview %{{.*}}[0, 0] [24, 64] [1, 1]
// CHECK-NEXT: nvgpu.tma.async.load %{{.*}}[%c0, %c0], %{{.*}} to [[rows]]
// CHECK: [[rows:%.+]] = memref.subview %{{.*}}[0, 0] [24, 64] [1, 1]
// CHECK-NEXT: nvgpu.tma.async.load %{{.*}}[%c64, %c0], %{{.*}} to [[rows]]
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#left = strided<[64, 1]>
#right = strided<[64, 1], offset: 4096>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @short_k(%B: memref<24x128xf16>, %leader: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 16384 : index
  %any = memref.cast %B : memref<24x128xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<1x2x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    nvvm.cluster.arrive
    nvvm.cluster.wait
    scf.if %leader {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      %left = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x2x64x64xf16, #space> to memref<64x64xf16, #left, #space>
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %left : !map, !barriers -> memref<64x64xf16, #left, #space>
      %right = memref.subview %b[0, 1, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x2x64x64xf16, #space> to memref<64x64xf16, #right, #space>
      nvgpu.tma.async.load %map[%c64, %c0], %full[%c0] to %right : !map, !barriers -> memref<64x64xf16, #right, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A matrix as high as a box stays, and so does what blocks of a cluster load for each other. Of a tile of C of 40 rows,
// 24 rows of A's tile are zeros.
// SHORT-LABEL: func.func @stays(
// SHORT: nvgpu.tma.create.descriptor {{.*}} box[%c40, %c64]
// SHORT: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// SHORT: scf.for %{{.*}} to %c192 step %c128
// SHORT: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c13312
// SHORT: nvgpu.tma.async.load {{.*}} -> memref<40x64xf16

// CHECK-LABEL: func.func @stays(
// CHECK-NOT: {{vector.store|fence.proxy|%c16, }}
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK-NOT: {{vector.store|fence.proxy}}
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c16384
// CHECK: nvgpu.tma.async.load {{.*}} -> memref<64x64xf16
// CHECK: nvgpu.tma.async.load {{.*}} multicast_mask = %mask : {{.*}} -> memref<64x64xf16
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#stage0 = strided<[64, 1]>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @stays(%A: memref<64x64xf16>, %B: memref<16x64xf16>, %leader: i1, %mask: i16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 16384 : index
  %any_a = memref.cast %A : memref<64x64xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*xf16> -> !map
  %any_b = memref.cast %B : memref<16x64xf16> to memref<*xf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<1x1x64x64xf16, #space>
    %b = memref.alloc() {operand_b} : memref<1x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      %a_tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, #stage0, #space>
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a_tile : !map, !barriers
          -> memref<64x64xf16, #stage0, #space>
      %b_tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, #stage0, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b_tile multicast_mask = %mask : !map, !barriers
          -> memref<64x64xf16, #stage0, #space>
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
#stage0 = strided<[64, 1]>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @no_prologue(%A: memref<16x64xf16>, %leader: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %any = memref.cast %A : memref<16x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
  // expected-error@+1 {{tc.shrink_tma_boxes: expected a barrier after the initialization of mbarriers}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<1x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      %tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, #stage0, #space>
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %tile : !map, !barriers -> memref<64x64xf16, #stage0, #space>
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @block_from_argument(%A: memref<16x64xf16>, %leader: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %any = memref.cast %A : memref<16x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
  // expected-error@+1 {{tc.shrink_tma_boxes: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<1x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      %tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, strided<[64, 1]>, #space>
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %tile : !map, !barriers
          -> memref<64x64xf16, strided<[64, 1]>, #space>
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @tile_from_argument(%A: memref<16x64xf16>, %leader: i1, %tile: memref<64x64xf16, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %any = memref.cast %A : memref<16x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      // expected-error@+1 {{tc.shrink_tma_boxes: expected an operand that views a tile in shared memory}}
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %tile : !map, !barriers -> memref<64x64xf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.shrink_tma_boxes: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
