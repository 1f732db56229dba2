// Each subgroup gets the blocks that the map gives it, in rounds along both dimensions.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step distribute_to_subgroups --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s

// CHECK-LABEL: func.func @rounds(
// CHECK: [[sg:%.+]] = gpu.subgroup_id
// The table of the RFC: two subgroups in a row share their rows, and each has two blocks.
// CHECK: [[r:%.+]] = arith.divui [[sg]], %c2
// CHECK: [[row:%.+]] = arith.muli [[r]], %c32
// CHECK: [[second:%.+]] = arith.addi [[row]], %c64
// CHECK: "xetile.init_tile"(%A, [[row]], %c0){{.*}} -> !xetile.tile<vector<32x128xf16>, unit>
// CHECK: "xetile.init_tile"(%A, [[second]], %c0){{.*}} -> !xetile.tile<vector<32x128xf16>, unit>
// CHECK-COUNT-2: xetile.load_tile
// CHECK-COUNT-2: arith.addf {{.*}} : vector<32x128xf16>
// CHECK-COUNT-2: xetile.store_tile
// CHECK-NOT: wg_map
#map = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 128]}>
!t = !xetile.tile<vector<128x128xf16>, #xetile.tile_attr<{wg = #map}>>
func.func @rounds(%A: memref<128x128xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c64, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<128x128xf16>, index, index) -> !t
    %v = "xetile.load_tile"(%t) : (!t) -> vector<128x128xf16>
    %two = arith.constant dense<2.0> : vector<128x128xf16>
    %w = arith.addf %v, %two : vector<128x128xf16>
    "xetile.store_tile"(%w, %t) : (vector<128x128xf16>, !t) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 128]}>
!t = !xetile.tile<vector<128x128xf16>, #xetile.tile_attr<{wg = #map}>>
func.func @threads(%A: memref<128x128xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  // expected-error @+1 {{the maps have 4 subgroups of 16 threads, and the launch 128 threads; expected 64}}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c128, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<128x128xf16>, index, index) -> !t
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

// A vector that comes from elsewhere.
#map = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 128]}>
!t = !xetile.tile<vector<128x128xf16>, #xetile.tile_attr<{wg = #map}>>
func.func @unknown(%A: memref<128x128xf16>, %v: vector<128x128xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c64, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<128x128xf16>, index, index) -> !t
    // expected-error @+1 {{xetile.store_tile: nothing says how the vector is distributed}}
    "xetile.store_tile"(%v, %t) : (vector<128x128xf16>, !t) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

// An exchange that shared local memory has no room for: 256 KB of which the columns cannot be divided into parts.
#from = #xetile.wg_map<{sg_layout = [1, 4], sg_data = [256, 64]}>
#to = #xetile.wg_map<{sg_layout = [4, 1], sg_data = [64, 32]}>
!t = !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #from}>>
!u = !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #to}>>
func.func @large(%A: memref<256x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c64, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<256x256xf32>, index, index) -> !t
    %u = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<256x256xf32>, index, index) -> !u
    %v = "xetile.load_tile"(%t) : (!t) -> vector<256x256xf32>
    // expected-error @+1 {{the vector has 262144 bytes and shared local memory 65536}}
    %w = "xetile.convert_layout"(%v) {wg_map = #to} : (vector<256x256xf32>) -> vector<256x256xf32>
    "xetile.store_tile"(%w, %u) : (vector<256x256xf32>, !u) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [1, 2]}>
!t = !xetile.tile<vector<2x2xf32>, #xetile.tile_attr<{wg = #map}>>
func.func @refused(%A: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<2x2xf32>, index, index) -> !t
    // expected-error @+1 {{arith.constant that is no splat has a wg_map: only a splat is distributed}}
    %c = arith.constant {wg_map = #map} dense<[[1.0, 2.0], [3.0, 4.0]]> : vector<2x2xf32>
    "xetile.store_tile"(%c, %t) : (vector<2x2xf32>, !t) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [8, 32]}>
!t = !xetile.tile<vector<16x32xf32>, #xetile.tile_attr<{wg = #map}>>
func.func @refused(%A: memref<16x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  // expected-error @+1 {{the launch does not state the threads of a subgroup: intel_reqd_sub_group_size = 16 : i32 does}}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x32xf32>, index, index) -> !t
    gpu.terminator
  }
  return
}

// -----

// A subgroup multiplies its rows of A by its columns of B, and adds its block of C. Threads along y count too.
// CHECK-LABEL: func.func @product(
// CHECK: [[sg:%.+]] = gpu.subgroup_id
// CHECK: [[i:%.+]] = arith.divui [[sg]], %c2
// CHECK-NEXT: [[row:%.+]] = arith.muli [[i]], %c16
// CHECK-NEXT: [[ta:%.+]] = "xetile.init_tile"(%A, [[row]], %c0)
// CHECK-NEXT: [[j:%.+]] = arith.remui [[sg]], %c2
// CHECK-NEXT: [[column:%.+]] = arith.muli [[j]], %c16
// CHECK-NEXT: [[tb:%.+]] = "xetile.init_tile"(%B, %c0, [[column]])
// CHECK-NEXT: [[tc:%.+]] = "xetile.init_tile"(%C, [[row]], [[column]])
// CHECK-NEXT: [[a:%.+]] = "xetile.load_tile"([[ta]])
// CHECK-NEXT: [[b:%.+]] = "xetile.load_tile"([[tb]])
// CHECK-NEXT: [[c:%.+]] = "xetile.load_tile"([[tc]])
// CHECK-NEXT: [[d:%.+]] = "xetile.tile_mma"([[a]], [[b]], [[c]])
// CHECK-SAME: (vector<16x32xf16>, vector<32x16xf16>, vector<16x16xf32>) -> vector<16x16xf32>
// CHECK-NEXT: "xetile.store_tile"([[d]], [[tc]])
#wa = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [16, 32]}>
#wb = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [32, 16]}>
#wc = #xetile.wg_map<{sg_layout = [2, 2], sg_data = [16, 16]}>
!a = !xetile.tile<vector<32x32xf16>, #xetile.tile_attr<{wg = #wa}>>
!b = !xetile.tile<vector<32x32xf16>, #xetile.tile_attr<{wg = #wb}>>
!c = !xetile.tile<vector<32x32xf32>, #xetile.tile_attr<{wg = #wc}>>
func.func @product(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c2 = arith.constant 2 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c32, %by = %c2, %bz = %c1) {
    %ta = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x32xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x32xf16>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x32xf32>, index, index) -> !c
    %a = "xetile.load_tile"(%ta) : (!a) -> vector<32x32xf16>
    %b = "xetile.load_tile"(%tb) : (!b) -> vector<32x32xf16>
    %c = "xetile.load_tile"(%tc) : (!c) -> vector<32x32xf32>
    %d = "xetile.tile_mma"(%a, %b, %c) {wg_map = #wc} : (vector<32x32xf16>, vector<32x32xf16>, vector<32x32xf32>) -> vector<32x32xf32>
    "xetile.store_tile"(%d, %tc) : (vector<32x32xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

// Four subgroups own eight rows each, in two rounds; each sums its own rows, and repeats the sums along them.
// CHECK-LABEL: func.func @row_sums(
// CHECK: [[first:%.+]] = "xetile.load_tile"
// CHECK-NEXT: [[second:%.+]] = "xetile.load_tile"
// CHECK-NEXT: [[sum:%.+]] = "xetile.reduction"([[first]]) {{.*}} : (vector<8x32xf32>) -> vector<8x1xf32>
// CHECK-NEXT: [[other:%.+]] = "xetile.reduction"([[second]])
// CHECK-NEXT: [[rows:%.+]] = "xetile.broadcast"([[sum]]) {{.*}} : (vector<8x1xf32>) -> vector<8x32xf32>
// CHECK-NEXT: [[others:%.+]] = "xetile.broadcast"([[other]])
// CHECK-NEXT: "xetile.store_tile"([[rows]],
// CHECK-NEXT: "xetile.store_tile"([[others]],
#rows = #xetile.wg_map<{sg_layout = [4, 1], sg_data = [8, 32]}>
#sums = #xetile.wg_map<{sg_layout = [4, 1], sg_data = [8, 1]}>
!t = !xetile.tile<vector<64x32xf32>, #xetile.tile_attr<{wg = #rows}>>
func.func @row_sums(%A: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c64, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x32xf32>, index, index) -> !t
    %v = "xetile.load_tile"(%t) : (!t) -> vector<64x32xf32>
    %s = "xetile.reduction"(%v) {kind = #vector.kind<add>, dims = [1], wg_map = #sums} : (vector<64x32xf32>) -> vector<64x1xf32>
    %w = "xetile.broadcast"(%s) {dims = [1], wg_map = #rows} : (vector<64x1xf32>) -> vector<64x32xf32>
    "xetile.store_tile"(%w, %t) : (vector<64x32xf32>, !t) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

// What lanes cannot turn goes through shared local memory, although each subgroup owns what it needs.
// CHECK-LABEL: func.func @turned_product(
// CHECK: memref.alloc() : memref<16x16xf32, 3>
// CHECK: xetile.tile_mma
// CHECK: xetile.store_tile
// CHECK: gpu.barrier
// CHECK: xetile.load_tile
// CHECK-NOT: xetile.transpose
#wa = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [16, 32]}>
#wb = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [32, 16]}>
#wc = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [16, 16]}>
!a = !xetile.tile<vector<16x32xf16>, #xetile.tile_attr<{wg = #wa}>>
!b = !xetile.tile<vector<32x16xf16>, #xetile.tile_attr<{wg = #wb}>>
!c = !xetile.tile<vector<16x16xf32>, #xetile.tile_attr<{wg = #wc}>>
func.func @turned_product(%A: memref<16x32xf16>, %B: memref<32x64xf16>, %C: memref<16x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %ta = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x32xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%B, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x64xf16>, index, index) -> !b
    %tc = "xetile.init_tile"(%C, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x64xf32>, index, index) -> !c
    %va = "xetile.load_tile"(%ta) : (!a) -> vector<16x32xf16>
    %vb = "xetile.load_tile"(%tb) : (!b) -> vector<32x16xf16>
    %d = "xetile.tile_mma"(%va, %vb) {wg_map = #wc} : (vector<16x32xf16>, vector<32x16xf16>) -> vector<16x16xf32>
    %e = "xetile.transpose"(%d) {permutation = [1, 0], wg_map = #wc} : (vector<16x16xf32>) -> vector<16x16xf32>
    "xetile.store_tile"(%e, %tc) : (vector<16x16xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [8, 16]}>
!t = !xetile.tile<vector<16x16xi32>, #xetile.tile_attr<{wg = #map}>>
!s = !xetile.tile<vector<16x16xf32>, #xetile.scatter>
func.func @refused(%A: memref<16x16xi32>, %B: memref<64xf32>, %m: vector<16x16xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x16xi32>, index, index) -> !t
    %v = "xetile.load_tile"(%t) : (!t) -> vector<16x16xi32>
    %o = arith.index_cast %v : vector<16x16xi32> to vector<16x16xindex>
    %s = "xetile.init_tile"(%B, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<64xf32>, vector<16x16xindex>) -> !s
    // expected-error @+1 {{xetile.load_gather: the offsets are distributed by #xetile.wg_map<{sg_layout = [1, 1], sg_data = [8, 16]}>, and the vector must be as well}}
    %g = "xetile.load_gather"(%s, %m) : (!s, vector<16x16xi1>) -> vector<16x16xf32>
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

// -----

#map = #xetile.wg_map<{sg_layout = [1, 1], sg_data = [8, 16]}>
!t = !xetile.tile<vector<16x16xi32>, #xetile.tile_attr<{wg = #map}>>
!s = !xetile.tile<vector<16x16xf32>, #xetile.scatter>
func.func @refused(%A: memref<16x16xi32>, %B: memref<64xf32>, %m: vector<16x16xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %c16, %by = %c1, %bz = %c1) {
    %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<16x16xi32>, index, index) -> !t
    %v = "xetile.load_tile"(%t) : (!t) -> vector<16x16xi32>
    %o = arith.index_cast %v : vector<16x16xi32> to vector<16x16xindex>
    %s = "xetile.init_tile"(%B, %o) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<64xf32>, vector<16x16xindex>) -> !s
    // expected-error @+1 {{scf.for carries a scatter tile of a work-group: xetile.init_tile makes one inside}}
    %last = scf.for %k = %c0 to %c16 step %c1 iter_args(%at = %s) -> (!s) {
      %g = "xetile.load_gather"(%at, %m) : (!s, vector<16x16xi1>) -> vector<16x16xf32>
      scf.yield %at : !s
    }
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
