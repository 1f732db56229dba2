// Fragments of fp8 are loaded as i8, from a view of the same bytes, which loads of one tile share; others stay.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step load_fragments_as_integers --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @two_loads(
// CHECK: [[B:%.+]] = memref.view %arg0[%c64][] : memref<8192xi8, {{.*}}> to memref<32x64xi8, {{.*}}>
// CHECK-NEXT: [[T:%.+]] = memref.view %arg0[%c64][] : memref<8192xi8, {{.*}}> to memref<32x64xf8E5M2, {{.*}}>
// CHECK-NEXT: [[L0:%.+]] = nvgpu.ldmatrix [[B]][%c0, %c0] {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x4xi8>
// CHECK-NEXT: [[F0:%.+]] = arith.bitcast [[L0]] : vector<4x4xi8> to vector<4x4xf8E5M2>
// CHECK-NEXT: [[L1:%.+]] = nvgpu.ldmatrix [[B]][%c16, %c0] {numTiles = 2 : i32, transpose = false} : {{.*}} -> vector<2x4xi8>
// CHECK-NEXT: [[F1:%.+]] = arith.bitcast [[L1]] : vector<2x4xi8> to vector<2x4xf8E5M2>
// CHECK-NEXT: memref.load [[T]]
// CHECK-NEXT: return [[F0]], [[F1]]
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!tile = memref<32x64xf8E5M2, #space>
func.func @two_loads(%arg0: memref<8192xi8, #space>) -> (vector<4x4xf8E5M2>, vector<2x4xf8E5M2>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %tile = memref.view %arg0[%c64][] : memref<8192xi8, #space> to !tile
  %0 = nvgpu.ldmatrix %tile[%c0, %c0] {numTiles = 4 : i32, transpose = false} : !tile -> vector<4x4xf8E5M2>
  %1 = nvgpu.ldmatrix %tile[%c16, %c0] {numTiles = 2 : i32, transpose = false} : !tile -> vector<2x4xf8E5M2>
  %2 = memref.load %tile[%c0, %c0] : !tile
  return %0, %1 : vector<4x4xf8E5M2>, vector<2x4xf8E5M2>
}

// -----

// CHECK-LABEL: func.func @others(
// CHECK-NEXT: nvgpu.ldmatrix %arg0{{.*}} -> vector<4x4xi8>
// CHECK-NEXT: return
#space = #gpu.address_space<workgroup>
func.func @others(%arg0: memref<32x64xi8, #space>, %i: index) -> vector<4x4xi8> {
  %0 = nvgpu.ldmatrix %arg0[%i, %i] {numTiles = 4 : i32, transpose = false} : memref<32x64xi8, #space> -> vector<4x4xi8>
  return %0 : vector<4x4xi8>
}

// -----

#space = #gpu.address_space<workgroup>
!tile = memref<32x64xf8E5M2, #space>
func.func @no_view(%arg0: !tile, %i: index) -> vector<4x4xf8E5M2> {
  // expected-error@+1 {{tc.load_fragments_as_integers: expected a tile that is a memref.view of the shared memory}}
  %0 = nvgpu.ldmatrix %arg0[%i, %i] {numTiles = 4 : i32, transpose = false} : !tile -> vector<4x4xf8E5M2>
  return %0 : vector<4x4xf8E5M2>
}

// -----

// CHECK-LABEL: func.func @rows_of_the_launch(
// CHECK-NEXT: [[B:%.+]] = memref.view %arg0[%i][%rows] : memref<8192xi8, {{.*}}> to memref<?x64xi8, {{.*}}>
// CHECK: nvgpu.ldmatrix [[B]]
#space = #gpu.address_space<workgroup>
!tile = memref<?x64xf8E5M2, #space>
func.func @rows_of_the_launch(%arg0: memref<8192xi8, #space>, %i: index, %rows: index) -> vector<4x4xf8E5M2> {
  %tile = memref.view %arg0[%i][%rows] : memref<8192xi8, #space> to !tile
  %0 = nvgpu.ldmatrix %tile[%i, %i] {numTiles = 4 : i32, transpose = false} : !tile -> vector<4x4xf8E5M2>
  return %0 : vector<4x4xf8E5M2>
}
