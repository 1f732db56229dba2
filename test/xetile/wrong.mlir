// Wrong programs, one after the other: each has one error, which says what would be right.
//
// RUN: %stepladder-opt --split-input-file --verify-diagnostics %s -o %t.mlir

// -----

// The first incorrect lowering of the RFC: a transposed memref, and a row-major tile.
func.func @wrong(%m: memref<128x128xf16, affine_map<(d0, d1) -> (d1, d0)>>, %i: index) {
  // expected-error @+1 {{the memref is column-major, and the tile has order = [1, 0]: expected order = [0, 1]}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16, affine_map<(d0, d1) -> (d1, d0)>>, index, index) -> !xetile.tile<vector<64x32xf16>, #xetile.tile_attr<{order = [1, 0]}>>
  return
}

// -----

// The second one: the default order is row-major.
func.func @wrong(%m: memref<128x128xf16, affine_map<(d0, d1) -> (d1, d0)>>, %i: index) {
  // expected-error @+1 {{the memref is column-major, and the tile has order = [1, 0]: expected order = [0, 1]}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16, affine_map<(d0, d1) -> (d1, d0)>>, index, index) -> !xetile.tile<vector<64x32xf16>, unit>
  return
}

// -----

// The third one: a row-major memref, and a column-major tile.
func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{the memref is row-major, and the tile has order = [0, 1]: expected order = [1, 0]}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x32xf16>, #xetile.tile_attr<{order = [0, 1]}>>
  return
}

// -----

// The order of a memref of four dimensions is that of the last two.
func.func @wrong(%m: memref<4x4x128x128xf16, affine_map<(d3, d2, d0, d1) -> (d3, d2, d1, d0)>>, %i: index) {
  // expected-error @+1 {{the memref is column-major}}
  %t = "xetile.init_tile"(%m, %i, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 4, 0, 0>} : (memref<4x4x128x128xf16, affine_map<(d3, d2, d0, d1) -> (d3, d2, d1, d0)>>, index, index, index, index) -> !xetile.tile<vector<64x32xf16>, unit>
  return
}

// -----

// Neither rows nor columns are contiguous.
func.func @wrong(%m: memref<128x128xf16, strided<[256, 2]>>, %i: index) {
  // expected-error @+1 {{the strides of the last two dimensions are 256 and 2: one of them must be 1}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16, strided<[256, 2]>>, index, index) -> !xetile.tile<vector<64x32xf16>, unit>
  return
}

// -----

// A layout that is no permutation.
func.func @wrong(%m: memref<128x128x128xf16, affine_map<(d0, d1, d2) -> (d2, d0 + d1, d1)>>, %i: index) {
  // expected-error @+1 {{is neither row-major nor column-major}}
  %t = "xetile.init_tile"(%m, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 3, 0, 0>} : (memref<128x128x128xf16, affine_map<(d0, d1, d2) -> (d2, d0 + d1, d1)>>, index, index, index) -> !xetile.tile<vector<64x32xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{order = [1, 1]; expected [1, 0] (row-major) or [0, 1] (column-major)}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x32xf16>, #xetile.tile_attr<{order = [1, 1]}>>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{it has 1 offsets, and a base of 2 dimensions needs 2}}
  %t = "xetile.init_tile"(%m, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<128x128xf16>, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{is static and has the shape and the strides: leave out those operands}}
  %t = "xetile.init_tile"(%m, %i, %i, %i, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (memref<128x128xf16>, index, index, index, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<?x?xf16>, %i: index) {
  // expected-error @+1 {{are not static: give 2 numbers of each, not 0 and 0}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<?x?xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: i64, %i: index) {
  // expected-error @+1 {{are not static: give 2 numbers of each, not 2 and 1}}
  %t = "xetile.init_tile"(%m, %i, %i, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 2, 1>} : (i64, index, index, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

// The contiguous dimension has the stride 1.
func.func @wrong(%m: i64, %i: index) {
  %two = arith.constant 2 : index
  // expected-error @+1 {{stride 1 must be 1, since that dimension is contiguous, and it is 2}}
  %t = "xetile.init_tile"(%m, %i, %i, %i, %i, %i, %two) {operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (i64, index, index, index, index, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{the tile has elements of bf16, and those of the memref are f16}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<8x16xbf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128xf16>, %i: index) {
  // expected-error @+1 {{has one dimension, and a tile needs two}}
  %t = "xetile.init_tile"(%m, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<128xf16>, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{a tile is two-dimensional}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<8xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16, 3>, %i: index) {
  // expected-error @+1 {{the memref is in shared memory, and the tile in global memory: a tile of it has memory_space = 3}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16, 3>, index, index) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{tile_attr has no parameter 'ordre': its parameters are wg, order, memory_space}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{ordre = [1, 0]}>>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{is not a map; expected an attribute such as #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{wg = 3}>>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{wg_map has no sg_data}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 2]}>}>>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{sg_layout has 3 entries, expected 2}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 2, 1], sg_data = [32, 32]}>}>>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{sg_layout = [2, 0] has a number below 1}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 0], sg_data = [32, 32]}>}>>
  return
}

// -----

func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{sg_data[0] = 24 does not divide the 64 elements of dimension 0}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [24, 32]}>}>>
  return
}

// -----

// A round of the distribution and the tile must divide one another.
func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  // expected-error @+1 {{sg_layout[0] * sg_data[0] = 24 and dimension 0 of 64 elements must divide one another}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [3, 2], sg_data = [8, 32]}>}>>
  return
}

// -----

// All maps of a function are of one work-group.
func.func @wrong(%m: memref<128x128xf16>, %i: index) {
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 32]}>}>>
  // expected-error @+1 {{sg_layout = [4, 2] has 8 subgroups, and the first tile of the function has 4}}
  %u = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x128xf16>, index, index) -> !xetile.tile<vector<64x64xf16>, #xetile.tile_attr<{wg = #xetile.wg_map<{sg_layout = [4, 2], sg_data = [16, 32]}>}>>
  return
}

// -----

func.func @wrong(%m: memref<?xf16>, %v: vector<8x16xindex>) {
  // expected-error @+1 {{a vector of offsets makes a scatter tile}}
  %t = "xetile.init_tile"(%m, %v) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<?xf16>, vector<8x16xindex>) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%m: memref<?xf16>, %v: vector<16x8xindex>) {
  // expected-error @+1 {{a scatter tile has an offset for each element, a vector<8x16xindex>, not vector<16x8xindex>}}
  %t = "xetile.init_tile"(%m, %v) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<?xf16>, vector<16x8xindex>) -> !xetile.tile<vector<8x16xf16>, #xetile.scatter>
  return
}

// -----

// The vector of a column-major tile is not transposed.
func.func @wrong(%t: !xetile.tile<vector<64x32xf16>, #xetile.tile_attr<{order = [0, 1]}>>) {
  // expected-error @+1 {{the result is vector<32x64xf16>, and the tile holds vector<64x32xf16>}}
  %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<64x32xf16>, #xetile.tile_attr<{order = [0, 1]}>>) -> vector<32x64xf16>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>) {
  // expected-error @+1 {{padding = 1 : i32 is not a floating-point number, as the elements of f16 are}}
  %v = "xetile.load_tile"(%t) {padding = 1 : i32} : (!xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, #xetile.scatter>) {
  // expected-error @+1 {{the tile is a scatter tile: xetile.load_gather loads it}}
  %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<8x16xf16>, #xetile.scatter>) -> vector<8x16xf16>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>, %v: vector<16x8xf16>) {
  // expected-error @+1 {{the value is vector<16x8xf16>, and the tile holds vector<8x16xf16>}}
  "xetile.store_tile"(%v, %t) : (vector<16x8xf16>, !xetile.tile<vector<8x16xf16>, unit>) -> ()
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>, %v: vector<8x16xf16>) {
  // expected-error @+1 {{a store has no padding}}
  "xetile.store_tile"(%v, %t) {padding = 0.0 : f16} : (vector<8x16xf16>, !xetile.tile<vector<8x16xf16>, unit>) -> ()
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>) {
  // expected-error @+1 {{locality = 4 : i32; accepted: 0 (no locality) to 3}}
  "xetile.prefetch_tile"(%t) {locality = 4 : i32} : (!xetile.tile<vector<8x16xf16>, unit>) -> ()
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{memory_space = 3}>>) {
  // expected-error @+1 {{the tile is in shared local memory, which has no cache}}
  "xetile.prefetch_tile"(%t) {locality = 3 : i32} : (!xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{memory_space = 3}>>) -> ()
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>, %i: index) {
  // expected-error @+1 {{the type stays}}
  %u = "xetile.update_tile_offset"(%t, %i, %i) : (!xetile.tile<vector<8x16xf16>, unit>, index, index) -> !xetile.tile<vector<8x32xf16>, unit>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, #xetile.scatter>, %i: index) {
  // expected-error @+1 {{the tile is a scatter tile: xetile.init_tile makes another one of other offsets}}
  %u = "xetile.update_tile_offset"(%t, %i, %i) : (!xetile.tile<vector<8x16xf16>, #xetile.scatter>, index, index) -> !xetile.tile<vector<8x16xf16>, #xetile.scatter>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>, %i: i32) {
  // expected-error @+1 {{offset_x is i32; expected an offset of type index}}
  %u = "xetile.update_tile_offset"(%t, %i, %i) : (!xetile.tile<vector<8x16xf16>, unit>, i32, i32) -> !xetile.tile<vector<8x16xf16>, unit>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>, %v: vector<8x16xf16>) {
  // expected-error @+1 {{kind = "addi" is not supported for elements of f16; accepted: addf, assign,}}
  %r = "xetile.atomic_rmw"(%v, %t) {kind = "addi"} : (vector<8x16xf16>, !xetile.tile<vector<8x16xf16>, unit>) -> vector<8x16xf16>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, #xetile.scatter>, %k: vector<8x8xi1>) {
  // expected-error @+1 {{the mask is vector<8x8xi1>, and the tile needs a vector<8x16xi1>}}
  %v = "xetile.load_gather"(%t, %k) : (!xetile.tile<vector<8x16xf16>, #xetile.scatter>, vector<8x8xi1>) -> vector<8x16xf16>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, unit>, %k: vector<8x16xi1>) {
  // expected-error @+1 {{is not a scatter tile: xetile.load_tile is for tiles of a block}}
  %v = "xetile.load_gather"(%t, %k) : (!xetile.tile<vector<8x16xf16>, unit>, vector<8x16xi1>) -> vector<8x16xf16>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf16>, #xetile.scatter>, %k: vector<8x16xi1>, %v: vector<8x8xf16>) {
  // expected-error @+1 {{the value is vector<8x8xf16>, and the tile holds vector<8x16xf16>}}
  "xetile.store_scatter"(%v, %k, %t) : (vector<8x8xf16>, vector<8x16xi1>, !xetile.tile<vector<8x16xf16>, #xetile.scatter>) -> ()
  return
}

// -----

func.func @wrong(%a: vector<8x16xf16>, %b: vector<8x16xf16>) {
  // expected-error @+1 {{A is 8 x 16 and B is 8 x 16: the columns of A must match the rows of B}}
  %d = "xetile.tile_mma"(%a, %b) : (vector<8x16xf16>, vector<8x16xf16>) -> vector<8x16xf32>
  return
}

// -----

func.func @wrong(%a: vector<8x16xf16>, %b: vector<16x32xf16>) {
  // expected-error @+1 {{the result is 8 x 32, not 8 x 16}}
  %d = "xetile.tile_mma"(%a, %b) : (vector<8x16xf16>, vector<16x32xf16>) -> vector<8x16xf32>
  return
}

// -----

func.func @wrong(%a: vector<8x16xf16>, %b: vector<16x32xf16>, %c: vector<8x32xf16>) {
  // expected-error @+1 {{C is vector<8x32xf16>, and the result is vector<8x32xf32>: they must have the same type}}
  %d = "xetile.tile_mma"(%a, %b, %c) : (vector<8x16xf16>, vector<16x32xf16>, vector<8x32xf16>) -> vector<8x32xf32>
  return
}

// -----

func.func @wrong(%a: vector<8x16xf16>, %b: vector<16x32xbf16>) {
  // expected-error @+1 {{A has elements of f16 and B of bf16}}
  %d = "xetile.tile_mma"(%a, %b) : (vector<8x16xf16>, vector<16x32xbf16>) -> vector<8x32xf32>
  return
}

// -----

func.func @wrong(%a: vector<8x16xi8>, %b: vector<16x32xi8>) {
  // expected-error @+1 {{products of i8 must be accumulated in i32, not in i8}}
  %d = "xetile.tile_mma"(%a, %b) : (vector<8x16xi8>, vector<16x32xi8>) -> vector<8x32xi8>
  return
}

// -----

// The maps of the operands are derived from that of the result.
#a = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [64, 32]}>
#b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
func.func @wrong(%ta: !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #a}>>, %tb: !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #b}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x32xf16>
  %b = "xetile.load_tile"(%tb) : (!xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #b}>>) -> vector<32x256xf16>
  // expected-error @+1 {{A is distributed by #xetile.wg_map<{sg_layout = [4, 8], sg_data = [64, 32]}>, and the map derived from wg_map is #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>}}
  %d = "xetile.tile_mma"(%a, %b) {wg_map = #b} : (vector<256x32xf16>, vector<32x256xf16>) -> vector<256x256xf32>
  return
}

// -----

#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
#b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
func.func @wrong(%ta: !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #a}>>, %tb: !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #b}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x32xf16>
  %b = "xetile.load_tile"(%tb) : (!xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #b}>>) -> vector<32x256xf16>
  // expected-error @+1 {{its operands are distributed to subgroups, and it has no wg_map: wg_map = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}> is derived}}
  %d = "xetile.tile_mma"(%a, %b) : (vector<256x32xf16>, vector<32x256xf16>) -> vector<256x256xf32>
  return
}

// -----

// A map that is given is the derived one.
#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
#b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
func.func @wrong(%ta: !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #a}>>, %tb: !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #b}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x32xf16>
  %b = "xetile.load_tile"(%tb) : (!xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #b}>>) -> vector<32x256xf16>
  // expected-error @+1 {{wg_map_a is #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>, and the map derived from wg_map is #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>}}
  %d = "xetile.tile_mma"(%a, %b) {wg_map = #b, wg_map_a = #b} : (vector<256x32xf16>, vector<32x256xf16>) -> vector<256x256xf32>
  return
}

// -----

func.func @wrong(%a: vector<8x16xf32>) {
  // expected-error @+1 {{permutation = [0, 1]; expected [1, 0]}}
  %d = "xetile.transpose"(%a) {permutation = [0, 1]} : (vector<8x16xf32>) -> vector<8x16xf32>
  return
}

// -----

func.func @wrong(%a: vector<8x16xf32>) {
  // expected-error @+1 {{the source is 8 x 16: the result is 16 x 8, not 8 x 16}}
  %d = "xetile.transpose"(%a) {permutation = [1, 0]} : (vector<8x16xf32>) -> vector<8x16xf32>
  return
}

// -----

// A transpose exchanges the dimensions of a map.
#a = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [64, 16]}>
#b = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [32, 64]}>
func.func @wrong(%ta: !xetile.tile<vector<512x128xf32>, #xetile.tile_attr<{wg = #a}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<512x128xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<512x128xf32>
  // expected-error @+1 {{the map of the source is #xetile.wg_map<{sg_layout = [4, 8], sg_data = [64, 16]}>, and the map derived from wg_map is #xetile.wg_map<{sg_layout = [8, 4], sg_data = [64, 32]}>}}
  %d = "xetile.transpose"(%a) {permutation = [1, 0], wg_map = #b} : (vector<512x128xf32>) -> vector<128x512xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x32xf32>) {
  // expected-error @+1 {{dims = [2]; expected [0] or [1]}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<add>, dims = [2]} : (vector<64x32xf32>) -> vector<64x1xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x32xf32>) {
  // expected-error @+1 {{the result is vector<64xf32>; expected a vector of two static dimensions}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<add>, dims = [1]} : (vector<64x32xf32>) -> vector<64xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x32xf32>) {
  // expected-error @+1 {{kind = #vector.kind<xor> is not supported for elements of f32}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<xor>, dims = [1]} : (vector<64x32xf32>) -> vector<64x1xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x32xf32>) {
  // expected-error @+1 {{the result is 64 x 1, expected 1 x 32}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<add>, dims = [0]} : (vector<64x32xf32>) -> vector<64x1xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x32xf32>) {
  // expected-error @+1 {{reduction_size = 12 does not divide the 32 elements of dimension 1}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<add>, dims = [1], reduction_size = 12} : (vector<64x32xf32>) -> vector<64x2xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x32xf32>) {
  // expected-error @+1 {{the result is 64 x 2, expected 64 x 4}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<add>, dims = [1], reduction_size = [8]} : (vector<64x32xf32>) -> vector<64x2xf32>
  return
}

// -----

// A subgroup reduces what it owns.
#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#b = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 1]}>
func.func @wrong(%ta: !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x256xf32>
  // expected-error @+1 {{sg_data[1] must be the 256 elements that are reduced, since a subgroup reduces what it owns; xetile.convert_layout gives the source such a map}}
  %d = "xetile.reduction"(%a) {kind = #vector.kind<add>, dims = [1], wg_map = #b} : (vector<256x256xf32>) -> vector<256x1xf32>
  return
}

// -----

func.func @wrong(%a: vector<2x32xf32>) {
  // expected-error @+1 {{dimension 0 of the source has 2 elements: it has 1, or broadcast_size says how many each of them fills}}
  %d = "xetile.broadcast"(%a) {dims = [0]} : (vector<2x32xf32>) -> vector<64x32xf32>
  return
}

// -----

func.func @wrong(%a: vector<2x32xf32>) {
  // expected-error @+1 {{the result is 64 x 32, expected 32 x 32}}
  %d = "xetile.broadcast"(%a) {dims = [0], broadcast_size = 16} : (vector<2x32xf32>) -> vector<64x32xf32>
  return
}

// -----

func.func @wrong(%a: vector<64x1xf32>) {
  // expected-error @+1 {{the result is 32 x 32, expected 64 x 32}}
  %d = "xetile.broadcast"(%a) {dims = [1]} : (vector<64x1xf32>) -> vector<32x32xf32>
  return
}

// -----

func.func @wrong(%a: vector<1x32xf32>) {
  // expected-error @+1 {{broadcast_size = 0 is not positive}}
  %d = "xetile.broadcast"(%a) {dims = [0], broadcast_size = 0} : (vector<1x32xf32>) -> vector<64x32xf32>
  return
}

// -----

#a = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [1, 32]}>
#b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
func.func @wrong(%ta: !xetile.tile<vector<1x256xf32>, #xetile.tile_attr<{wg = #a}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<1x256xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<1x256xf32>
  // expected-error @+1 {{the source is distributed by #xetile.wg_map<{sg_layout = [4, 8], sg_data = [1, 32]}>, and the map derived from wg_map is #xetile.wg_map<{sg_layout = [8, 4], sg_data = [1, 64]}>}}
  %d = "xetile.broadcast"(%a) {dims = [0], wg_map = #b} : (vector<1x256xf32>) -> vector<256x256xf32>
  return
}

// -----

func.func @wrong(%a: vector<256x256xf32>) {
  // expected-error @+1 {{it has no wg_map, which is the map of its result}}
  %d = "xetile.convert_layout"(%a) : (vector<256x256xf32>) -> vector<256x256xf32>
  return
}

// -----

#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#b = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
func.func @wrong(%a: vector<256x256xf32>) {
  // expected-error @+1 {{the map of the source is not known: set wg_map_source}}
  %d = "xetile.convert_layout"(%a) {wg_map = #b} : (vector<256x256xf32>) -> vector<256x256xf32>
  return
}

// -----

#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#b = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
func.func @wrong(%ta: !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x256xf32>
  // expected-error @+1 {{the source is distributed by #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>, and wg_map_source is #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>: they must be the same}}
  %d = "xetile.convert_layout"(%a) {wg_map = #b, wg_map_source = #b} : (vector<256x256xf32>) -> vector<256x256xf32>
  return
}

// -----

#a = #xetile.wg_map<{sg_layout = [4, 4], sg_data = [64, 64]}>
#b = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
func.func @wrong(%a: vector<256x256xf32>) {
  // expected-error @+1 {{the source is distributed to 16 subgroups, and wg_map to 32}}
  %d = "xetile.convert_layout"(%a) {wg_map = #b, wg_map_source = #a} : (vector<256x256xf32>) -> vector<256x256xf32>
  return
}

// -----

// A value is stored to a tile of its own map.
#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#b = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
func.func @wrong(%ta: !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>, %tb: !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #b}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x256xf32>
  // expected-error @+1 {{xetile.convert_layout gives the value the tile's map}}
  "xetile.store_tile"(%a, %tb) : (vector<256x256xf32>, !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #b}>>) -> ()
  return
}

// -----

// Elementwise ops on tile vectors keep the map.
#a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#b = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
func.func @wrong(%ta: !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>, %tb: !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #b}>>) {
  %a = "xetile.load_tile"(%ta) : (!xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<256x256xf32>
  %b = "xetile.load_tile"(%tb) : (!xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #b}>>) -> vector<256x256xf32>
  // expected-error @+1 {{arith.addf: vectors of an elementwise op have one map}}
  %s = arith.addf %a, %b : vector<256x256xf32>
  "xetile.store_tile"(%s, %tb) : (vector<256x256xf32>, !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #b}>>) -> ()
  return
}

// -----

func.func @wrong(%v: vector<8x16xf16>) {
  // expected-error @+1 {{it has 1 operands, expected 2}}
  "xetile.store_tile"(%v) : (vector<8x16xf16>) -> ()
  return
}

// -----

// An atomic update by several subgroups would be made several times.
#a = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 32]}>
func.func @wrong(%t: !xetile.tile<vector<64x32xf32>, #xetile.tile_attr<{wg = #a}>>, %v: vector<64x32xf32>) {
  // expected-error @+1 {{several subgroups own an element of the tile}}
  %r = "xetile.atomic_rmw"(%v, %t) {kind = "addf"} : (vector<64x32xf32>, !xetile.tile<vector<64x32xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<64x32xf32>
  return
}

// -----

func.func @wrong(%m: memref<16x16xf16>, %o: vector<16xindex>) {
  // expected-error @+1 {{a scatter tile is of a memref of one dimension, not of memref<16x16xf16>}}
  %t = "xetile.init_tile"(%m, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<16x16xf16>, vector<16xindex>) -> !xetile.tile<vector<16xf16>, #xetile.scatter>
  return
}

// -----

// A value of a work-group, and a tile of a subgroup.
#a = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [8, 32]}>
func.func @wrong(%t: !xetile.tile<vector<16x32xf32>, #xetile.tile_attr<{wg = #a}>>, %u: !xetile.tile<vector<16x32xf32>, unit>) {
  %v = "xetile.load_tile"(%t) : (!xetile.tile<vector<16x32xf32>, #xetile.tile_attr<{wg = #a}>>) -> vector<16x32xf32>
  // expected-error @+1 {{and the tile has no wg: a tile of a work-group has one}}
  "xetile.store_tile"(%v, %u) : (vector<16x32xf32>, !xetile.tile<vector<16x32xf32>, unit>) -> ()
  return
}

// -----

func.func @wrong(%m: memref<16x16xf16>, %i: index) {
  // expected-error @+1 {{order = ["row"] is not a list of integers, such as [8, 4]}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x16xf16>, index, index) -> !xetile.tile<vector<8x16xf16>, #xetile.tile_attr<{order = ["row"]}>>
  return
}

// -----

func.func @wrong(%m: memref<16x16xf16>, %i: index) {
  // expected-error @+1 {{a tile has static sizes, and its vector is scalable}}
  %t = "xetile.init_tile"(%m, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x16xf16>, index, index) -> !xetile.tile<vector<8x[16]xf16>, unit>
  return
}

// -----

func.func @wrong(%v: vector<8x16xf16>) {
  // expected-error @+1 {{the result has elements of f32, and the source of f16}}
  %t = "xetile.transpose"(%v) {permutation = [1, 0]} : (vector<8x16xf16>) -> vector<16x8xf32>
  return
}

// -----

func.func @wrong(%t: !xetile.tile<vector<8x16xf32>, unit>, %v: vector<8x16xf32>) {
  // expected-error @+1 {{arith.addf: 3 : i32 is not a map}}
  %w = arith.addf %v, %v {wg_map = 3 : i32} : vector<8x16xf32>
  "xetile.store_tile"(%w, %t) : (vector<8x16xf32>, !xetile.tile<vector<8x16xf32>, unit>) -> ()
  return
}
