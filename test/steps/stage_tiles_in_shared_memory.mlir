// A XeTile product becomes copies to shared memory and a matmul there; a tile of C is divided among blocks.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile_mma_sync --step stage_tiles_in_shared_memory --set block_m=64 --set block_n=64 --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// The tile of C is 64 x 128, and a block computes 64 x 64 of it.
// CHECK-LABEL: func.func @product
// CHECK: gpu.launch blocks({{.*}}) in ({{%.+}} = %c4, {{%.+}} = %c2, {{%.+}} = %c1) threads({{.*}}) in ({{%.+}} = %c1, {{%.+}} = %c1, {{%.+}} = %c1)
// CHECK-DAG: [[x:%.+]] = gpu.block_id x
// CHECK-DAG: [[y:%.+]] = gpu.block_id y
// CHECK: [[a:%.+]] = memref.subview %A[{{%.+}}, 0] [64, 96]
// CHECK: [[b:%.+]] = memref.subview %B[0, {{%.+}}] [96, 64]
// CHECK: [[c:%.+]] = memref.subview %C[{{%.+}}, {{%.+}}] [64, 64]
// CHECK: linalg.fill ins({{.*}}) outs([[c]]
// CHECK: [[sa:%.+]] = memref.alloc() {operand_a} : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK: [[sb:%.+]] = memref.alloc() {operand_b} : memref<32x64xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for [[k:%.+]] = %c0 to %c96 step %c32
// CHECK: [[pa:%.+]] = memref.subview [[a]][0, [[k]]] [64, 32]
// CHECK: [[pb:%.+]] = memref.subview [[b]][[[k]], 0] [32, 64]
// CHECK: linalg.copy {operand_a} ins([[pa]] {{.*}}) outs([[sa]]
// CHECK: linalg.copy {operand_b} ins([[pb]] {{.*}}) outs([[sb]]
// CHECK: linalg.matmul ins([[sa]], [[sb]] {{.*}}) outs([[c]]
// CHECK-NOT: xetile.
// CHECK: // -----
#mp = #xetile.wg_map<{sg_layout = [2, 4], sg_data = [32, 32]}>
!a = !xetile.tile<vector<64x32xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 4], sg_data = [32, 32]}>}>>
!b = !xetile.tile<vector<32x128xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 4], sg_data = [32, 32]}>}>>
!c = !xetile.tile<vector<64x128xf32>, #xetile.tile_attr<{wg = #mp}>>
func.func @product(%A: memref<128x96xf16>, %B: memref<96x256xf16>, %C: memref<128x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c2, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c128, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c64 : index
    %j = arith.muli %x, %c128 : index
    %ta = "xetile.init_tile"(%A, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x96xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%B, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<96x256xf16>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x256xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %sum:3 = scf.for %k = %c0 to %c96 step %c32 iter_args(%acc = %zero, %ka = %ta, %kb = %tb) -> (vector<64x128xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<64x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x128xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) {wg_map = #mp} : (vector<64x32xf16>, vector<32x128xf16>, vector<64x128xf32>) -> vector<64x128xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<64x128xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<64x128xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

// A tile that reaches beyond its matrix.
!a = !xetile.tile<vector<64x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, unit>
!c = !xetile.tile<vector<64x64xf32>, unit>
func.func @refused(%A: memref<96x64xf16>, %B: memref<64x64xf16>, %C: memref<96x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  // expected-error @below {{the tiles reach 128 x 64 elements of memref<96x64xf16>: copies to shared memory have no bounds}}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c64 : index
    %ta = "xetile.init_tile"(%A, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<96x64xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<96x64xf32>, index, index) -> !c
    %start = "xetile.load_tile"(%tc) : (!c) -> vector<64x64xf32>
    %sum:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %start, %ka = %ta, %kb = %tb) -> (vector<64x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ka) : (!a) -> vector<64x32xf16>
      %vb = "xetile.load_tile"(%kb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) : (vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32>) -> vector<64x64xf32>
      %na = "xetile.update_tile_offset"(%ka, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%kb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<64x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum#0, %tc) : (vector<64x64xf32>, !c) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @refused(%A: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{the launch has 0 xetile.tile_mma; accepted: one}}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c1, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf16>, index, index) -> !xetile.tile<vector<32x32xf16>, unit>
    %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<32x32xf16>, unit>) -> vector<32x32xf16>
    "xetile.store_tile"(%v, %t) : (vector<32x32xf16>, !xetile.tile<vector<32x32xf16>, unit>) -> ()
    gpu.terminator
  }
  return
}

// -----

// One step of k: a loop of one iteration is folded away before.
// CHECK-LABEL: func.func @one_step(
// CHECK: linalg.fill
// CHECK: memref.alloc() {operand_a} : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_a}
// CHECK: linalg.copy {operand_b}
// CHECK: linalg.matmul
// CHECK-NOT: xetile
!a = !xetile.tile<vector<64x32xf16>, unit>
!b = !xetile.tile<vector<32x64xf16>, unit>
!c = !xetile.tile<vector<64x64xf32>, unit>
func.func @one_step(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c1, %by = %c1, %bz = %c1) {
    %ta = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x32xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x64xf16>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32>, index, index) -> !c
    %va = "xetile.load_tile"(%ta) : (!a) -> vector<64x32xf16>
    %vb = "xetile.load_tile"(%tb) : (!b) -> vector<32x64xf16>
    %d = "xetile.tile_mma"(%va, %vb) : (vector<64x32xf16>, vector<32x64xf16>) -> vector<64x64xf32>
    "xetile.store_tile"(%d, %tc) : (vector<64x64xf32>, !c) -> ()
    gpu.terminator
  }
  return
}
