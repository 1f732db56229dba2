// Boxes of A have the rows of a tile of C, where its stages have more: those are zero. The boxes of B stay.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step shrink_tma_boxes --set block_m=40 --set consumer_warpgroups=1 \
// RUN:   | FileCheck %s

// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> (s0 floordiv 8 + 40)>
// CHECK-LABEL: func.func @tiles_of_40_rows(
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c40, %c64]
// CHECK-SAME: -> <tensor = memref<40x64xf16, 3>, swizzle = swizzle_128b
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: [[a:%.+]] = memref.alloc() {operand_a} : memref<2x1x64x64xf16
// In each of two stages, 24 rows of eight units of 16 bytes.
// CHECK: scf.for [[unit:%.+]] = %{{.*}} to %c192 step %c128 {
// CHECK: [[row:%.+]] = affine.apply #[[to_row]]()[[[unit]]]
// CHECK: vector.store %{{.*}}, [[a]][%{{.*}}, %{{.*}}, [[row]], %{{.*}}] {alignment = 16 : i64}
// CHECK: gpu.barrier
// 40 rows of A and 64 of B, of 128 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c13312
// CHECK: [[tile:%.+]] = memref.subview [[a]]{{\[}}%stage, 0, 0, 0] [1, 1, 64, 64]
// CHECK: [[rows:%.+]] = memref.subview [[tile]][0, 0] [40, 64] [1, 1]
// CHECK-NEXT: nvgpu.tma.async.load [[a_map]][%k, %row], %{{.*}}[%stage] to [[rows]] :
// CHECK: nvgpu.tma.async.load [[b_map]][%c0, %k], %{{.*}}[%stage] to {{.*}} -> memref<64x64xf16
#space = #gpu.address_space<workgroup>
#view = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @tiles_of_40_rows(%A: memref<200x512xf16>, %B: memref<512x64xf16>, %leader: i1, %stage: index, %k: index,
                            %row: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 16384 : index
  %any_a = memref.cast %A : memref<200x512xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*xf16> -> !map
  %any_b = memref.cast %B : memref<512x64xf16> to memref<*xf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %b = memref.alloc() {operand_b} : memref<2x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : !barriers
      %a_tile = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<2x1x64x64xf16, #space> to memref<64x64xf16, #view, #space>
      nvgpu.tma.async.load %a_map[%k, %row], %full[%stage] to %a_tile : !map, !barriers
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
