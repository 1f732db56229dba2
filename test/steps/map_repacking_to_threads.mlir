// Copies to workspaces become launches of 128 threads, of which each copies 32 bytes; its loads precede its stores.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step map_repacking_to_threads --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s

// Rows of 58 bytes: single elements of 16 rows, five blocks for 67 rows; the last has three rows.
// CHECK-LABEL: func.func @odd(
// CHECK: [[W:%.+]] = memref.alloc() {workspace}
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c5, {{.*}} = %c1{{.*}}) threads({{.*}}) in ({{.*}} = %c128
// CHECK-SAME: module(@odd_repack_0) function(@odd_repack_0)
// CHECK: [[COLUMNS:%.+]] = arith.constant 29
// CHECK: arith.cmpi ult, {{.*}}, [[COLUMNS]]
// CHECK: [[ROWS:%.+]] = arith.constant 52
// CHECK: [[WHOLE:%.+]] = arith.cmpi ult, {{.*}}, [[ROWS]]
// CHECK: scf.if [[WHOLE]]
// CHECK-COUNT-16: memref.load %A
// CHECK-NOT: memref.load
// CHECK-COUNT-16: memref.store {{.*}}, [[W]]
// CHECK: } else {
// CHECK: scf.for
// CHECK-NEXT: [[V:%.+]] = memref.load %A
// CHECK-NEXT: memref.store [[V]], [[W]]
// CHECK-NOT: memref.copy
func.func @odd(%A: memref<67x29xbf16>) {
  %w = memref.alloc() {workspace} : memref<67x64xbf16>
  %v = memref.subview %w[0, 0] [67, 29] [1, 1] : memref<67x64xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  memref.copy %A, %v {workspace} : memref<67x29xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  return
}

// -----

// Rows of 8 bytes more than a multiple of 16: vectors of four, of four rows. All blocks have four rows.
// CHECK-LABEL: func.func @vectors(
// CHECK: scf.if
// CHECK-NOT: scf
// CHECK-COUNT-4: vector.load %A{{.*}} {alignment = 8 : i64} : memref<64x1540xf16>, vector<4xf16>
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 8 : i64} : memref<64x1600xf16>, vector<4xf16>
// CHECK-NOT: scf
func.func @vectors(%A: memref<64x1540xf16>) {
  %w = memref.alloc() {workspace} : memref<64x1600xf16>
  %v = memref.subview %w[0, 0] [64, 1540] [1, 1] : memref<64x1600xf16> to memref<64x1540xf16, strided<[1600, 1]>>
  memref.copy %A, %v {workspace} : memref<64x1540xf16> to memref<64x1540xf16, strided<[1600, 1]>>
  return
}

// -----

// Two workspaces of one buffer: vectors of four elements, of two rows, and what the body computes of each.
// CHECK-LABEL: func.func @parts(
// CHECK: [[W1:%.+]] = memref.alloc() {workspace}
// CHECK: [[W2:%.+]] = memref.alloc() {workspace}
// CHECK: gpu.launch
// CHECK-COUNT-2: vector.load %A{{.*}} : memref<64x32xf32>, vector<4xf32>
// CHECK: [[DOUBLE:%.+]] = arith.addf [[V:%.+]], [[V]] : vector<4xf32>
// CHECK-NEXT: vector.store [[V]], [[W1]]
// CHECK-NEXT: vector.store [[DOUBLE]], [[W2]]
// CHECK: [[DOUBLE2:%.+]] = arith.addf [[V2:%.+]], [[V2]] : vector<4xf32>
// CHECK-NEXT: vector.store [[V2]], [[W1]]
// CHECK-NEXT: vector.store [[DOUBLE2]], [[W2]]
// CHECK-NOT: linalg
#same = affine_map<(i, j) -> (i, j)>
!view = memref<64x32xf32, strided<[64, 1]>>
func.func @parts(%A: memref<64x32xf32>) {
  %w1 = memref.alloc() {workspace} : memref<64x64xf32>
  %v1 = memref.subview %w1[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to !view
  %w2 = memref.alloc() {workspace} : memref<64x64xf32>
  %v2 = memref.subview %w2[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to !view
  linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%A : memref<64x32xf32>) outs(%v1, %v2 : !view, !view) attrs = {workspace} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.addf %a, %a : f32
    linalg.yield %a, %d : f32, f32
  }
  return
}

// -----

#same = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
!view = memref<32x32xf32, strided<[64, 1]>>
func.func @other_places(%A: memref<32x32xf32>) {
  %w = memref.alloc() {workspace} : memref<32x64xf32>
  %v = memref.subview %w[0, 0] [32, 32] [1, 1] : memref<32x64xf32> to !view
  // expected-error@+1 {{expected elements that are computed of those at the same position of one buffer}}
  linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%A : memref<32x32xf32>) outs(%v : !view) attrs = {workspace} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// The matrices of a batch are rows of one.
// CHECK-LABEL: func.func @batch(
// CHECK: memref.collapse_shape %A {{\[\[}}0, 1], [2]] : memref<3x10x5xf16> into memref<30x5xf16>
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c2,
func.func @batch(%A: memref<3x10x5xf16>) {
  %w = memref.alloc() {workspace} : memref<3x10x64xf16>
  %v = memref.subview %w[0, 0, 0] [3, 10, 5] [1, 1, 1]
      : memref<3x10x64xf16> to memref<3x10x5xf16, strided<[640, 64, 1]>>
  memref.copy %A, %v {workspace} : memref<3x10x5xf16> to memref<3x10x5xf16, strided<[640, 64, 1]>>
  return
}

// -----

// A transpose of bytes: 4 bytes of 32 rows each, which become 32 bytes of 4 rows. Eight adjacent threads have adjacent
// columns, and the next eight the 16 rows below: 64 adjacent bytes of a row are stored at once, and the next 64 then.
// Rows of the last block are stored one by one where a thread has no whole vectors of them.
// CHECK: affine_map<()[s0, s1] -> (s0 * 128 + ((s1 mod 32) floordiv 8) * 16)>
// CHECK: affine_map<()[s0, s1] -> ((s1 floordiv 32) * 32 + (s1 mod 8) * 4)>
// CHECK: affine_map<()[s0] -> (s0 + 80)>
// CHECK: affine_map<()[s0] -> (s0 + 64)>
// CHECK-LABEL: func.func @transpose(
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c1,
// CHECK: scf.if
// CHECK: scf.if
// CHECK-COUNT-32: vector.load %A{{.*}} {alignment = 4 : i64} : memref<100x40xi8>, vector<4xi8>
// CHECK-NOT: vector.load
// CHECK: [[V:%.+]] = vector.from_elements {{.*}} : vector<16xi8>
// CHECK-COUNT-8: vector.store {{.*}} {alignment = 16 : i64} : memref<40x128xi8>, vector<16xi8>
// CHECK-NOT: vector.store
// CHECK: } else {
// CHECK-COUNT-2: scf.for
// CHECK-NEXT: vector.load %A
// CHECK-COUNT-4: memref.store {{.*}} : memref<40x128xi8>
// CHECK-NOT: memref.transpose
func.func @transpose(%A: memref<100x40xi8>) {
  %t = memref.transpose %A (k, n) -> (n, k) : memref<100x40xi8> to memref<40x100xi8, strided<[1, 40]>>
  %w = memref.alloc() {workspace} : memref<40x128xi8>
  %v = memref.subview %w[0, 0] [40, 100] [1, 1] : memref<40x128xi8> to memref<40x100xi8, strided<[128, 1]>>
  memref.copy %t, %v {workspace} : memref<40x100xi8, strided<[1, 40]>> to memref<40x100xi8, strided<[128, 1]>>
  return
}

// -----

// The matrices of a batch are transposed each for itself: two blocks of 32 rows of f32 for each of three.
// CHECK-LABEL: func.func @transposed_batch(
// CHECK: memref.collapse_shape %A {{\[\[}}0, 1], [2]] : memref<3x64x5xf32> into memref<192x5xf32>
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c6,
// CHECK-COUNT-8: memref.load
// CHECK-NOT: memref.load
// CHECK-COUNT-2: vector.store {{.*}} : memref<15x64xf32>, vector<4xf32>
func.func @transposed_batch(%A: memref<3x64x5xf32>) {
  %t = memref.transpose %A (b, k, n) -> (b, n, k) : memref<3x64x5xf32> to memref<3x5x64xf32, strided<[320, 1, 5]>>
  %w = memref.alloc() {workspace} : memref<3x5x64xf32>
  %v = memref.subview %w[0, 0, 0] [3, 5, 64] [1, 1, 1]
      : memref<3x5x64xf32> to memref<3x5x64xf32, strided<[320, 64, 1]>>
  memref.copy %t, %v {workspace}
      : memref<3x5x64xf32, strided<[320, 1, 5]>> to memref<3x5x64xf32, strided<[320, 64, 1]>>
  return
}

// -----

// Copies that follow one another are one launch, five blocks of which copy A, and four B; a descriptor reads no
// elements.
// CHECK-LABEL: func.func @two(
// CHECK: [[W1:%.+]] = memref.alloc() {workspace}
// CHECK: [[W2:%.+]] = memref.alloc() {workspace}
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c9,
// CHECK-SAME: module(@two_repack_0) function(@two_repack_0)
// CHECK: [[BLOCK:%.+]] = gpu.block_id x
// CHECK: [[FIVE:%.+]] = arith.constant 5
// CHECK: [[IS_FIRST:%.+]] = arith.cmpi ult, [[BLOCK]], [[FIVE]]
// CHECK: scf.if [[IS_FIRST]]
// CHECK: memref.load %A
// CHECK: memref.store {{.*}}, [[W1]]
// CHECK: } else {
// CHECK: affine.apply {{.*}}[[BLOCK]]
// CHECK: vector.load %B
// CHECK: vector.store {{.*}}, [[W2]]
// CHECK-NOT: memref.copy
// CHECK-NOT: gpu.launch
!map = !nvgpu.tensormap.descriptor<tensor = memref<32x32xbf16, 3>, swizzle = none, l2promo = none, oob = zero,
  interleave = none>
func.func @two(%A: memref<67x29xbf16>, %B: memref<16x60xbf16>) {
  %w1 = memref.alloc() {workspace} : memref<67x64xbf16>
  %v1 = memref.subview %w1[0, 0] [67, 29] [1, 1] : memref<67x64xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  memref.copy %A, %v1 {workspace} : memref<67x29xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  %c32 = arith.constant 32 : index
  %any = memref.cast %v1 : memref<67x29xbf16, strided<[64, 1]>> to memref<*xbf16>
  %map = nvgpu.tma.create.descriptor %any box[%c32, %c32] : memref<*xbf16> -> !map
  %w2 = memref.alloc() {workspace} : memref<16x64xbf16>
  %v2 = memref.subview %w2[0, 0] [16, 60] [1, 1] : memref<16x64xbf16> to memref<16x60xbf16, strided<[64, 1]>>
  memref.copy %B, %v2 {workspace} : memref<16x60xbf16> to memref<16x60xbf16, strided<[64, 1]>>
  return
}

// -----

// What is called in between may read what the first one writes, and write what the second one reads.
// CHECK-LABEL: func.func @not_together(
// CHECK: gpu.launch
// CHECK-SAME: function(@not_together_repack_0)
// CHECK: call @other
// CHECK: gpu.launch
// CHECK-SAME: function(@not_together_repack_1)
func.func private @other()
func.func @not_together(%A: memref<67x29xbf16>, %B: memref<16x60xbf16>) {
  %w1 = memref.alloc() {workspace} : memref<67x64xbf16>
  %v1 = memref.subview %w1[0, 0] [67, 29] [1, 1] : memref<67x64xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  memref.copy %A, %v1 {workspace} : memref<67x29xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  func.call @other() : () -> ()
  %w2 = memref.alloc() {workspace} : memref<16x64xbf16>
  %v2 = memref.subview %w2[0, 0] [16, 60] [1, 1] : memref<16x64xbf16> to memref<16x60xbf16, strided<[64, 1]>>
  memref.copy %B, %v2 {workspace} : memref<16x60xbf16> to memref<16x60xbf16, strided<[64, 1]>>
  return
}

// -----

// Other copies stay.
// CHECK-LABEL: func.func @others(
// CHECK: memref.copy %A, %B : memref<8xf16> to memref<8xf16>
func.func @others(%A: memref<8xf16>, %B: memref<8xf16>) {
  memref.copy %A, %B : memref<8xf16> to memref<8xf16>
  return
}

// -----

func.func @to_an_argument(%A: memref<67x29xf16>, %B: memref<67x64xf16>) {
  %v = memref.subview %B[0, 0] [67, 29] [1, 1] : memref<67x64xf16> to memref<67x29xf16, strided<[64, 1]>>
  // expected-error@+1 {{tc.map_repacking_to_threads: expected a copy to the matrix of a workspace}}
  memref.copy %A, %v {workspace} : memref<67x29xf16> to memref<67x29xf16, strided<[64, 1]>>
  return
}

// -----

func.func @of_a_view(%A: memref<67x29xf16, strided<[30, 1]>>) {
  %w = memref.alloc() {workspace} : memref<67x64xf16>
  %v = memref.subview %w[0, 0] [67, 29] [1, 1] : memref<67x64xf16> to memref<67x29xf16, strided<[64, 1]>>
  // expected-error@+1 {{tc.map_repacking_to_threads: expected a copy of a contiguous buffer}}
  memref.copy %A, %v {workspace} : memref<67x29xf16, strided<[30, 1]>> to memref<67x29xf16, strided<[64, 1]>>
  return
}
