// Neighbouring blocks form clusters: a cluster is a row of the new grid, its blocks numbered down its columns first.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step form_clusters --split-input-file
// DEFINE: %{accepted} = sed '/^\/\/ Refused/Q' %s
// RUN: %{opt} %s --set cluster_m=2 --set cluster_n=2 --verify-diagnostics | FileCheck %s
// RUN: %{accepted} | %{opt} - --set cluster_m=2 | FileCheck %s --check-prefix=ROWS
// RUN: %{accepted} | %{opt} - --set cluster_n=4 | FileCheck %s --check-prefix=COLUMNS
// RUN: %{accepted} | %{opt} - | FileCheck %s --check-prefix=ONE
// RUN: %refused 2 %{opt} %s --set cluster_m=4 --set cluster_n=4 | FileCheck %s --check-prefix=LARGE

// LARGE: step 'form_clusters': a cluster must have at most 8 blocks (cluster_m * cluster_n), the portable maximum

// 8 x 4 tiles. Row of a tile: 2 * cluster + rank mod 2; column: 2 * cluster + rank / 2.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> (s0 * 2 + s1 mod 2)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 * 2 + s1 floordiv 2)>
// CHECK-LABEL: func.func @tiles(
// CHECK: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c8, %{{[^)]*}} = %c4, %{{[^)]*}} = %c1)
// CHECK-SAME: threads({{[^)]*}}) in (%{{[^)]*}} = %c2, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-NOT: gpu.block_id
// CHECK: [[x:%.+]] = gpu.cluster_id x
// CHECK: [[y:%.+]] = gpu.cluster_id y
// CHECK: [[rank:%.+]] = gpu.cluster_block_id x
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[y]], [[rank]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[x]], [[rank]]]
// CHECK: memref.store %x, %C{{\[}}[[i]], [[j]]]
// CHECK-NOT: gpu.block_id
// CHECK: // -----

// ROWS-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> (s0 * 2 + s1 mod 2)>
// ROWS-DAG: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 + s1 floordiv 2)>
// ROWS: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c2, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// ROWS-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c8, %{{[^)]*}} = %c4, %{{[^)]*}} = %c1)

// COLUMNS: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 * 4 + s1)>
// COLUMNS: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// COLUMNS-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c8, %{{[^)]*}} = %c1)
// COLUMNS: [[x:%.+]] = gpu.cluster_id x
// COLUMNS: [[y:%.+]] = gpu.cluster_id y
// COLUMNS: [[rank:%.+]] = gpu.cluster_block_id x
// COLUMNS: [[j:%.+]] = affine.apply #[[column]]()[[[x]], [[rank]]]
// COLUMNS: memref.store %x, %C{{\[}}[[y]], [[j]]]

// ONE-NOT: cluster
// ONE: gpu.launch blocks({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c8, %{{[^)]*}} = %c1)
// ONE: [[x:%.+]] = gpu.block_id x
// ONE: [[y:%.+]] = gpu.block_id y
// ONE: memref.store %x, %C{{\[}}[[y]], [[x]]]
// ONE-NOT: cluster
// ONE: func.func @edges(
func.func @tiles(%x: f32, %C: memref<8x4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c8, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c2, %sy = %c1, %sz = %c1) {
    %j = gpu.block_id x
    %i = gpu.block_id y
    memref.store %x, %C[%i, %j] : memref<8x4xf32>
    gpu.terminator
  }
  return
}

// -----

// Three rows of tiles of 64, of which the last has 22 rows. Two clusters have four rows: the last is beyond C, with a
// tile of no rows. The columns need no such tile.
// CHECK-DAG: #[[inside:.+]] = affine_map<()[s0, s1] -> (64, s0 * -128 - s1 * 64 + (s1 floordiv 2) * 128 + 150)>
// CHECK-LABEL: func.func @edges(
// CHECK: blocks({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c2, %{{[^)]*}} = %c1)
// CHECK: [[extent:%.+]] = affine.min #[[inside]]()
// CHECK-NEXT: [[rows:%.+]] = arith.maxsi [[extent]], %c0
// CHECK: affine.min
// CHECK-NOT: arith.maxsi
// CHECK: memref.subview %C{{.*}} {{\[}}[[rows]], %{{.*}}]
// CHECK: // -----
func.func @edges(%x: f32, %C: memref<150x100xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %j = gpu.block_id x
    %i = gpu.block_id y
    %row = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%i]
    %column = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%j]
    %rows = affine.min affine_map<()[s0] -> (64, 150 - s0 * 64)>()[%i]
    %columns = affine.min affine_map<()[s0] -> (64, 100 - s0 * 64)>()[%j]
    %tile = memref.subview %C[%row, %column] [%rows, %columns] [1, 1]
        : memref<150x100xf32> to memref<?x?xf32, strided<[100, 1], offset: ?>>
    linalg.fill ins(%x : f32) outs(%tile : memref<?x?xf32, strided<[100, 1], offset: ?>>)
    gpu.terminator
  }
  return
}

// -----

// No block reads its id along x.
// CHECK-LABEL: func.func @one_id(
// CHECK: [[y:%.+]] = gpu.cluster_id y
// CHECK: memref.store %x, %C[
// CHECK: // -----
func.func @one_id(%x: f32, %C: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c8, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i = gpu.block_id y
    memref.store %x, %C[%i] : memref<8xf32>
    gpu.terminator
  }
  return
}

// Refused below.
// -----

func.func @odd_rows(%x: f32, %C: memref<3x4xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{the grid has 3 rows of blocks, and clusters of 2 x 2 blocks take a multiple of 2: smaller}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %j = gpu.block_id x
    %i = gpu.block_id y
    memref.store %x, %C[%i, %j] : memref<3x4xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @odd_columns(%x: f32, %C: memref<4x5xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  // expected-error@+1 {{the grid has 5 columns of blocks, and clusters of 2 x 2 blocks take a multiple of 2: smaller}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c5, %gy = %c4, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %j = gpu.block_id x
    %i = gpu.block_id y
    memref.store %x, %C[%i, %j] : memref<4x5xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @grid_from_argument(%n: index) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.form_clusters: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.form_clusters: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
