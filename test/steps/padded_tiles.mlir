// Tiles that need not be whole: the tiles in shared memory are, with zeros beyond the matrices, and the sums are in one too.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile_wgmma --step stage_tiles_in_shared_memory --set block_m=64 --set block_n=64 --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// B is stored as its transpose, and copied as it is stored. A is given by its address. C is added.
// CHECK-DAG: [[rows:#.+]] = affine_map<()[s0] -> (s0 * -64 + 72, 64)>
// CHECK-DAG: [[depth:#.+]] = affine_map<()[s0] -> (-s0 + 40, 32)>
// CHECK-DAG: [[ma:#.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: [[mb:#.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @ragged
// CHECK: gpu.launch blocks({{.*}}) in ({{%.+}} = %c1, {{%.+}} = %c2, {{%.+}} = %c1)
// CHECK: [[m:%.+]] = affine.min [[rows]]()[%block_id_y]
// CHECK: [[a:%.+]] = memref.subview %A[{{%.+}}, 0] {{\[}}[[m]], 40]
// CHECK: [[b:%.+]] = memref.subview %B[{{.+}}, 0] [48, 40]
// CHECK: [[c:%.+]] = memref.subview %C[{{%.+}}, {{.+}}] {{\[}}[[m]], 48]
// CHECK: [[sums:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// CHECK: [[own:%.+]] = memref.subview [[sums]][0, 0] {{\[}}[[m]], 48]
// CHECK: linalg.fill {operand_c}
// CHECK: linalg.copy {operand_c} ins([[c]] {{.*}}) outs({{%.+}} :
// CHECK: [[sa:%.+]] = memref.alloc() {operand_a} : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK: [[sb:%.+]] = memref.alloc() {operand_b} : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for [[k:%.+]] = %c0 to %c40 step %c32
// CHECK: [[left:%.+]] = affine.min [[depth]]()[[[k]]]
// CHECK: [[pa:%.+]] = memref.subview [[a]][0, [[k]]] {{\[}}[[m]], [[left]]]
// CHECK: [[pb:%.+]] = memref.subview [[b]][0, [[k]]] [48, [[left]]]
// CHECK: linalg.fill {operand_a} {{.*}} outs([[sa]]
// CHECK: linalg.copy {operand_a} ins([[pa]]
// CHECK: linalg.fill {operand_b} {{.*}} outs([[sb]]
// CHECK: linalg.copy {operand_b} ins([[pb]]
// CHECK: linalg.matmul indexing_maps = {{\[}}[[ma]], [[mb]], {{#.+}}] ins([[sa]], [[sb]] {{.*}}) outs([[sums]]
// CHECK: linalg.copy {operand_c} ins({{.*}}) outs([[c]]
// CHECK-NOT: xetile.
// CHECK: // -----
!a = !xetile.tile<vector<32x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<32x64xf32>, unit>
func.func @ragged(%A: memref<72x40xf16>, %B: memref<48x40xf16>, %C: memref<72x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %pointer = memref.extract_aligned_pointer_as_index %A : memref<72x40xf16> -> index
  %address = arith.index_cast %pointer : index to i64
  %view = memref.transpose %B (n, k) -> (k, n) : memref<48x40xf16> to memref<40x48xf16, strided<[1, 40]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c32 : index
    %ta = "xetile.init_tile"(%address, %i, %c0, %c72, %c40, %c40, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x48xf16, strided<[1, 40]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<72x48xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c40 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<32x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<32x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 32 : i32}
  return
}

// -----

// Blocks that leave out rows of C.
!a = !xetile.tile<vector<32x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<32x64xf32>, unit>
func.func @refused(%A: memref<72x40xf16>, %B: memref<48x40xf16>, %C: memref<72x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %pointer = memref.extract_aligned_pointer_as_index %A : memref<72x40xf16> -> index
  %address = arith.index_cast %pointer : index to i64
  %view = memref.transpose %B (n, k) -> (k, n) : memref<48x40xf16> to memref<40x48xf16, strided<[1, 40]>>
  // expected-error @below {{the tiles reach 64 x 64 x 64 of m x n x k = 72 x 48 x 40: they must cover the matrices}}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c32 : index
    %ta = "xetile.init_tile"(%address, %i, %c0, %c72, %c40, %c40, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x48xf16, strided<[1, 40]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<72x48xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c40 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<32x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<32x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 32 : i32}
  return
}

// -----

// Matrices of no product.
!a = !xetile.tile<vector<32x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<32x64xf32>, unit>
func.func @refused(%A: memref<72x40xf16>, %B: memref<48x40xf16>, %C: memref<72x56xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %pointer = memref.extract_aligned_pointer_as_index %A : memref<72x40xf16> -> index
  %address = arith.index_cast %pointer : index to i64
  %view = memref.transpose %B (n, k) -> (k, n) : memref<48x40xf16> to memref<40x48xf16, strided<[1, 40]>>
  // expected-error @below {{A is 72 x 40, B 40 x 48 and C 72 x 56, of no product of matrices}}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c32 : index
    %ta = "xetile.init_tile"(%address, %i, %c0, %c72, %c40, %c40, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x48xf16, strided<[1, 40]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<72x56xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c40 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<32x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<32x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 32 : i32}
  return
}

// -----

// Elements beyond the matrices that are no zeros would be multiplied.
!a = !xetile.tile<vector<32x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<32x64xf32>, unit>
func.func @refused(%A: memref<72x40xf16>, %B: memref<48x40xf16>, %C: memref<72x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %pointer = memref.extract_aligned_pointer_as_index %A : memref<72x40xf16> -> index
  %address = arith.index_cast %pointer : index to i64
  %view = memref.transpose %B (n, k) -> (k, n) : memref<48x40xf16> to memref<40x48xf16, strided<[1, 40]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c32 : index
    %ta = "xetile.init_tile"(%address, %i, %c0, %c72, %c40, %c40, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x48xf16, strided<[1, 40]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<72x48xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c40 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<32x64xf32>, !a, !b) {
      // expected-error @below {{the padding is 1.000000e+00 : f16, and the tiles reach beyond the matrices; accepted: 0}}
      %va = "xetile.load_tile"(%ka) {padding = 1.0 : f16} : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<32x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 32 : i32}
  return
}

// -----

// An address whose strides are those of another matrix.
!a = !xetile.tile<vector<32x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<32x64xf32>, unit>
func.func @refused(%A: memref<72x40xf16>, %B: memref<48x40xf16>, %C: memref<72x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %pointer = memref.extract_aligned_pointer_as_index %A : memref<72x40xf16> -> index
  %address = arith.index_cast %pointer : index to i64
  %view = memref.transpose %B (n, k) -> (k, n) : memref<48x40xf16> to memref<40x48xf16, strided<[1, 40]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c32 : index
    // expected-error @below {{the base is i64; accepted: a block tile of a static two-dimensional memref without gaps, or of its transpose}}
    %ta = "xetile.init_tile"(%address, %i, %c0, %c72, %c40, %c64, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x48xf16, strided<[1, 40]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<72x48xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c40 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<32x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<32x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 32 : i32}
  return
}

// -----

// A second store.
!a = !xetile.tile<vector<32x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<32x64xf32>, unit>
func.func @refused(%A: memref<72x40xf16>, %B: memref<48x40xf16>, %C: memref<72x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %pointer = memref.extract_aligned_pointer_as_index %A : memref<72x40xf16> -> index
  %address = arith.index_cast %pointer : index to i64
  %view = memref.transpose %B (n, k) -> (k, n) : memref<48x40xf16> to memref<40x48xf16, strided<[1, 40]>>
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c32 : index
    %ta = "xetile.init_tile"(%address, %i, %c0, %c72, %c40, %c40, %c1) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !a
    %tb = "xetile.init_tile"(%view, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x48xf16, strided<[1, 40]>>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<72x48xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c40 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<32x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<32x64xf32>, !c) -> ()
    // expected-error @below {{the launch has 2 xetile.store_tile; accepted: one, of the sums}}
    "xetile.store_tile"(%start, %tc) : (vector<32x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 32 : i32}
  return
}
