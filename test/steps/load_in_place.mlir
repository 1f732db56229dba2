// Boxes of a workspace to which a kernel copies a buffer in another order become boxes of the buffer.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step load_in_place --split-input-file --verify-diagnostics | FileCheck %s

// Rows of the workspace are 8 times 32 rows of B, in the other order: a box of 64 of them is two times 32.
// CHECK-DAG: #[[inner:.+]] = affine_map<()[s0] -> (s0 mod 32)>
// CHECK-DAG: #[[outer:.+]] = affine_map<()[s0] -> (s0 floordiv 32)>
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: [[b:%.+]]: memref<32x8x128xf16>
// CHECK-NOT: {{launch_func|workspace}}
// CHECK: [[view:%.+]] = memref.reinterpret_cast [[b]] to offset: [0], sizes: [8, 32, 128], strides: [128, 1024, 1]
// CHECK: [[any:%.+]] = memref.cast [[view]]
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor [[any]] box[%c2, %c32, %c64]
// CHECK-SAME: -> <tensor = memref<2x32x64xf16, 3>, swizzle = swizzle_128b
// CHECK: nvgpu.tma.prefetch.descriptor [[map]]
// CHECK: scf.for [[k:%.+]] = %c0 to %c256 step %c64 {
// CHECK: [[tile:%.+]] = memref.subview {{.*}} [1, 1, 64, 64]
// CHECK-DAG: [[l:%.+]] = affine.apply #[[inner]]()[[[k]]]
// CHECK-DAG: [[outside:%.+]] = affine.apply #[[outer]]()[[[k]]]
// CHECK: [[box:%.+]] = memref.expand_shape [[tile]] {{\[\[}}0, 1], [2]] output_shape [2, 32, 64]
// CHECK: nvgpu.tma.async.load [[map]]{{\[}}%c64, [[l]], [[outside]]], %{{.*}}[%stage] to [[box]]
// CHECK: }
// CHECK-NOT: gpu.module
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#view = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
module attributes {gpu.container_module} {
  func.func @rows(%B: memref<32x8x128xf16>, %stage: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %w = memref.alloc() {whole, workspace} : memref<256x128xf16>
    %expanded = memref.expand_shape %w [[0, 1], [2]] output_shape [8, 32, 128]
        : memref<256x128xf16> into memref<8x32x128xf16>
    gpu.launch_func @copy::@copy blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%B : memref<32x8x128xf16>, %expanded : memref<8x32x128xf16>) {permutation = array<i64: 1, 0, 2>}
    %any = memref.cast %w : memref<256x128xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %b = memref.alloc() {operand_b} : memref<2x1x64x64xf16, #space>
      %full = nvgpu.mbarrier.create -> !barriers
      nvgpu.tma.prefetch.descriptor %map : !map
      scf.for %k = %c0 to %c256 step %c64 {
        %tile = memref.subview %b[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
            : memref<2x1x64x64xf16, #space> to memref<64x64xf16, #view, #space>
        nvgpu.tma.async.load %map[%c64, %k], %full[%stage] to %tile : !map, !barriers
            -> memref<64x64xf16, #view, #space>
      }
      gpu.terminator
    }
    return
  }
  gpu.module @copy {
    gpu.func @copy(%B: memref<32x8x128xf16>, %w: memref<8x32x128xf16>) kernel {
      gpu.return
    }
  }
}

// -----

// Multicast of a part of a tile of a batch: heads lie inside of the sequence, and one matrix is one batch and head.
// CHECK-DAG: #[[head:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// CHECK-DAG: #[[batch:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK-LABEL: func.func @heads(
// CHECK: memref.reinterpret_cast {{.*}} sizes: [2, 4, 64, 32], strides: [8192, 32, 128, 1]
// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c1, %c1, %c64, %c32]
// CHECK-DAG: [[h:%.+]] = affine.apply #[[head]]()[%matrix]
// CHECK-DAG: [[b:%.+]] = affine.apply #[[batch]]()[%matrix]
// CHECK: memref.expand_shape {{.*}} output_shape [1, 1, 64, 32]
// CHECK: nvgpu.tma.async.load [[map]]{{\[}}%c0, %c0, [[h]], [[b]]], %{{.*}} to %{{.*}} multicast_mask = %mask
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#view = strided<[2048, 32, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<1x64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                   interleave = none>
module attributes {gpu.container_module} {
  func.func @heads(%Q: memref<2x64x4x32xf16>, %stage: index, %matrix: index, %mask: i16) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %w = memref.alloc() {whole, workspace} : memref<8x64x32xf16>
    %expanded = memref.expand_shape %w [[0, 1], [2], [3]] output_shape [2, 4, 64, 32]
        : memref<8x64x32xf16> into memref<2x4x64x32xf16>
    gpu.launch_func @copy::@copy blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%Q : memref<2x64x4x32xf16>, %expanded : memref<2x4x64x32xf16>) {permutation = array<i64: 0, 2, 1, 3>}
    %any = memref.cast %w : memref<8x64x32xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %any box[%c1, %c64, %c32] : memref<*xf16> -> !map
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %a = memref.alloc() {operand_a} : memref<2x1x64x32xf16, #space>
      %full = nvgpu.mbarrier.create -> !barriers
      %tile = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
          : memref<2x1x64x32xf16, #space> to memref<1x64x32xf16, #view, #space>
      nvgpu.tma.async.load %map[%c0, %c0, %matrix], %full[%stage] to %tile multicast_mask = %mask : !map, !barriers
          -> memref<1x64x32xf16, #view, #space>
      gpu.terminator
    }
    return
  }
  gpu.module @copy {
    gpu.func @copy(%Q: memref<2x64x4x32xf16>, %w: memref<2x4x64x32xf16>) kernel {
      gpu.return
    }
  }
}

// -----

// The box may begin at any row, and TMA would load rows of one l only up to its end: the copy stays.
// CHECK-LABEL: func.func @anywhere(
// CHECK: gpu.launch_func @copy::@copy
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: gpu.module @copy
#space = #gpu.address_space<workgroup>
#view = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
module attributes {gpu.container_module} {
  func.func @anywhere(%B: memref<64x8x128xf16>, %stage: index, %k: index) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %w = memref.alloc() {whole, workspace} : memref<512x128xf16>
    %expanded = memref.expand_shape %w [[0, 1], [2]] output_shape [8, 64, 128]
        : memref<512x128xf16> into memref<8x64x128xf16>
    gpu.launch_func @copy::@copy blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%B : memref<64x8x128xf16>, %expanded : memref<8x64x128xf16>) {permutation = array<i64: 1, 0, 2>}
    %any = memref.cast %w : memref<512x128xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %b = memref.alloc() {operand_b} : memref<2x1x64x64xf16, #space>
      %full = nvgpu.mbarrier.create -> !barriers
      %tile = memref.subview %b[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<2x1x64x64xf16, #space> to memref<64x64xf16, #view, #space>
      nvgpu.tma.async.load %map[%c64, %k], %full[%stage] to %tile : !map, !barriers
          -> memref<64x64xf16, #view, #space>
      gpu.terminator
    }
    return
  }
  gpu.module @copy {
    gpu.func @copy(%B: memref<64x8x128xf16>, %w: memref<8x64x128xf16>) kernel {
      gpu.return
    }
  }
}
