// The tiles that a loop loads are prefetched, by a map that gives each subgroup lines of its own.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline xetile --step prefetch_tiles --split-input-file --verify-diagnostics
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set distance=2 | FileCheck %s --check-prefix=TWO

// CHECK-LABEL: func.func @loop(
// CHECK: [[tile:%.+]] = "xetile.init_tile"(%A, %c0, %c0){{.*}}sg_data = [8, 32], sg_layout = [32, 1]
// CHECK: [[ahead:%.+]] = "xetile.update_tile_offset"([[tile]], %c0, %c96)
// CHECK: scf.for {{.*}} iter_args({{.*}}, [[p:%.+]] = [[ahead]])
// CHECK: xetile.load_tile
// CHECK: "xetile.prefetch_tile"([[p]]) {locality = 3 : i32}
// CHECK: [[next:%.+]] = "xetile.update_tile_offset"([[p]], %c0, %c32)
// CHECK: scf.yield %{{.*}}, [[next]]
// TWO: "xetile.update_tile_offset"(%{{.*}}, %c0, %c64)
#map = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
!a = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #map}>>
func.func @loop(%A: memref<256x256xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
    : (memref<256x256xf16>, index, index) -> !a
  %last = scf.for %k = %c0 to %c256 step %c32 iter_args(%here = %t) -> (!a) {
    %v = "xetile.load_tile"(%here) : (!a) -> vector<256x32xf16>
    "xetile.store_tile"(%v, %here) : (vector<256x32xf16>, !a) -> ()
    %next = "xetile.update_tile_offset"(%here, %c0, %c32) : (!a, index, index) -> !a
    scf.yield %next : !a
  }
  return
}

// -----

// The step of the tile is computed in the loop.
!t = !xetile.tile<vector<8x16xf16>, unit>
func.func @varying(%A: memref<256x256xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
    : (memref<256x256xf16>, index, index) -> !t
  %last = scf.for %k = %c0 to %c256 step %c32 iter_args(%here = %t) -> (!t) {
    %v = "xetile.load_tile"(%here) : (!t) -> vector<8x16xf16>
    "xetile.store_tile"(%v, %here) : (vector<8x16xf16>, !t) -> ()
    %step = arith.addi %k, %c32 : index
    // expected-error @+1 {{a prefetch needs a tile of xetile.init_tile before the loop, and constant steps}}
    %next = "xetile.update_tile_offset"(%here, %c0, %step) : (!t, index, index) -> !t
    scf.yield %next : !t
  }
  return
}

// -----

!t = !xetile.tile<vector<8x16xf16>, unit>
func.func @still(%A: memref<256x256xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %t = "xetile.init_tile"(%A, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
    : (memref<256x256xf16>, index, index) -> !t
  // expected-error @+1 {{the loop does not advance a tile that it loads}}
  scf.for %k = %c0 to %c256 step %c32 {
    %v = "xetile.load_tile"(%t) : (!t) -> vector<8x16xf16>
    "xetile.store_tile"(%v, %t) : (vector<8x16xf16>, !t) -> ()
  }
  return
}
