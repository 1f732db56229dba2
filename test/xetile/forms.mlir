// Every form of every operation, at subgroup level and at work-group level.
//
// RUN: %stepladder-opt %s -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// What is printed is read, and printed the same.
// RUN: %stepladder-opt %t.mlir | diff %t.mlir -

#wg_map_a = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 128]}>
#tile_attr = #xetile.tile_attr<{wg = #wg_map_a}>
#column = #xetile.tile_attr<{order = [0, 1]}>
#slm = #xetile.tile_attr<{memory_space = 3}>

// CHECK-LABEL: func.func @forms
func.func @forms(%m2: memref<128x128xbf16>, %m5: memref<4x4x128x128xbf16>, %md: memref<?x?xbf16>, %addr: i64, %o: index, %s: index, %one: index,
   %mt: memref<128x128xbf16, affine_map<(d0, d1) -> (d1, d0)>>, %mp: memref<?xbf16>, %offs: vector<8x64xindex>, %mask: vector<8x64xi1>,
   %slm: memref<64x64xf32, 3>) {
  %t0 = "xetile.init_tile"(%m2, %o, %o) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xbf16>, index, index) -> !xetile.tile<vector<8x16xbf16>, unit>
  %t1 = "xetile.init_tile"(%m5, %o, %o, %o, %o) {operandSegmentSizes = array<i32: 1, 4, 0, 0>} : (memref<4x4x128x128xbf16>, index, index, index, index) -> !xetile.tile<vector<8x16xbf16>, unit>
  %t2 = "xetile.init_tile"(%md, %o, %o, %s, %s, %s, %one) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (memref<?x?xbf16>, index, index, index, index, index, index) -> !xetile.tile<vector<8x16xbf16>, unit>
  %t3 = "xetile.init_tile"(%addr, %o, %o, %s, %s, %s, %one) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !xetile.tile<vector<8x16xbf16>, unit>
  %t4 = "xetile.init_tile"(%mt, %o, %o) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xbf16, affine_map<(d0, d1) -> (d1, d0)>>, index, index) -> !xetile.tile<vector<64x32xbf16>, #column>
  %t5 = "xetile.init_tile"(%mp, %offs) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<?xbf16>, vector<8x64xindex>) -> !xetile.tile<vector<8x64xbf16>, #xetile.scatter>
  %g = "xetile.load_gather"(%t5, %mask) {padding = 1.0 : bf16} : (!xetile.tile<vector<8x64xbf16>, #xetile.scatter>, vector<8x64xi1>) -> vector<8x64xbf16>
  "xetile.store_scatter"(%g, %mask, %t5) : (vector<8x64xbf16>, vector<8x64xi1>, !xetile.tile<vector<8x64xbf16>, #xetile.scatter>) -> ()
  %v = "xetile.load_tile"(%t0) {padding = 1.0 : bf16} : (!xetile.tile<vector<8x16xbf16>, unit>) -> vector<8x16xbf16>
  %r = "xetile.atomic_rmw"(%v, %t0) {kind = 0 : i64} : (vector<8x16xbf16>, !xetile.tile<vector<8x16xbf16>, unit>) -> vector<8x16xbf16>
  %x = arith.constant dense<0.0> : vector<64x64xf32>
  %red = "xetile.reduction"(%x) {kind = #vector.kind<add>, dims = [0], reduction_size = [32]} : (vector<64x64xf32>) -> vector<2x64xf32>
  %bc = "xetile.broadcast"(%red) {dims = [0], broadcast_size = [32]} : (vector<2x64xf32>) -> vector<64x64xf32>
  %tt = "xetile.init_tile"(%m2, %o, %o) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xbf16>, index, index) -> !xetile.tile<vector<128x128xbf16>, #tile_attr>
  // CHECK: xetile.init_tile{{.*}}#xetile.tile_attr<{memory_space = 3 : i64}>
  %ts = "xetile.init_tile"(%slm, %o, %o) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x64xf32, 3>, index, index) -> !xetile.tile<vector<64x64xf32>, #slm>
  "xetile.store_tile"(%bc, %ts) : (vector<64x64xf32>, !xetile.tile<vector<64x64xf32>, #slm>) -> ()
  "xetile.prefetch_tile"(%t0) {locality = 3 : i32} : (!xetile.tile<vector<8x16xbf16>, unit>) -> ()
  %moved = "xetile.update_tile_offset"(%t0, %o, %s) : (!xetile.tile<vector<8x16xbf16>, unit>, index, index) -> !xetile.tile<vector<8x16xbf16>, unit>
  %vt = "xetile.transpose"(%v) {permutation = [1, 0]} : (vector<8x16xbf16>) -> vector<16x8xbf16>
  %mma = "xetile.tile_mma"(%v, %vt) : (vector<8x16xbf16>, vector<16x8xbf16>) -> vector<8x8xf32>
  // CHECK: xetile.tile_mma{{.*}} : (vector<8x16xbf16>, vector<16x8xbf16>, vector<8x8xf32>) -> vector<8x8xf32>
  %mma2 = "xetile.tile_mma"(%v, %vt, %mma) : (vector<8x16xbf16>, vector<16x8xbf16>, vector<8x8xf32>) -> vector<8x8xf32>
  // CHECK: xetile.convert_layout{{.*}}wg_map = #xetile.wg_map<{sg_data = [32, 128], sg_layout = [4, 1]}>
  %wide = "xetile.load_tile"(%tt) : (!xetile.tile<vector<128x128xbf16>, #tile_attr>) -> vector<128x128xbf16>
  %other = "xetile.convert_layout"(%wide) {wg_map = #xetile.wg_map<{sg_layout = [4, 1], sg_data = [32, 128]}>, wg_map_source = #wg_map_a} : (vector<128x128xbf16>) -> vector<128x128xbf16>
  return
}
