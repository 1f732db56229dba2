// Blocks are numbered down columns of `raster_group` block rows: the grid stays, and the tile of a block follows from
// its number. Where the group does not divide the grid's height, the last group has fewer rows. With a group of one row
// nothing changes.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline mma_sync --step rasterize_blocks --split-input-file \
// DEFINE:   --verify-diagnostics
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set raster_group=2 | FileCheck %s --check-prefix=TWO
// RUN: %{opt} --set raster_group=1 | FileCheck %s --check-prefix=ONE

// 4 x 8 blocks: one group of eight rows, in which block number / 8 is the column.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> ({{.*}}floordiv 32{{.*}})>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0, s1] -> (((s0 + s1 * 4) mod 32) floordiv 8)>
// CHECK-LABEL: func.func @eight_rows(
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c1)
// CHECK: [[x:%.+]] = gpu.block_id x
// CHECK-NEXT: [[y:%.+]] = gpu.block_id y
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[x]], [[y]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[x]], [[y]]]
// CHECK: memref.load %A{{\[}}[[i]]]
// CHECK: memref.load %A{{\[}}[[j]]]

// TWO: affine_map<()[s0, s1] -> (((s0 + s1 * 4) mod 8) floordiv 2)>
// TWO-LABEL: func.func @eight_rows(

// ONE-NOT: affine
// ONE: [[x:%.+]] = gpu.block_id x
// ONE: [[y:%.+]] = gpu.block_id y
// ONE: memref.load %A{{\[}}[[y]]]
// ONE: memref.load %A{{\[}}[[x]]]
// ONE-NOT: affine
// ONE: // -----
func.func @eight_rows(%A: memref<64xf16>, %B: memref<64xf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c8, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %0 = memref.load %A[%y] : memref<64xf16>
    %1 = memref.load %A[%x] : memref<64xf16>
    memref.store %0, %B[%x] : memref<64xf16>
    memref.store %1, %B[%y] : memref<64xf16>
    gpu.terminator
  }
  return
}

// -----

// Five rows, fewer than a group: one group of them. In groups of two: two groups, and one of what is left.
// CHECK: affine_map<()[s0, s1] -> (((s0 + s1 * 4) mod 20) floordiv 5)>
// CHECK-LABEL: func.func @five_rows(
// CHECK-NOT: affine.min
// CHECK: // -----

// TWO-DAG: #[[within:.+]] = affine_map<()[s0, s1] -> ((s0 + s1 * 4) mod 8)>
// TWO-DAG: #[[height:.+]] = affine_map<()[s0, s1] -> (2, ((s0 + s1 * 4) floordiv 8) * -2 + 5)>
// TWO-LABEL: func.func @five_rows(
// TWO: [[x:%.+]] = gpu.block_id x
// TWO-NEXT: [[y:%.+]] = gpu.block_id y
// TWO-DAG: [[rows:%.+]] = affine.min #[[height]]()[[[x]], [[y]]]
// TWO-DAG: [[place:%.+]] = affine.apply #[[within]]()[[[x]], [[y]]]
// TWO: [[columns_and_rows:%.+]]:2 = affine.delinearize_index [[place]] into ({{[0-9]+}}, [[rows]]) : index, index
// TWO: memref.load %A{{\[}}[[columns_and_rows]]#0]
func.func @five_rows(%A: memref<64xf16>, %B: memref<64xf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c5, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %0 = memref.load %A[%x] : memref<64xf16>
    memref.store %0, %B[%y] : memref<64xf16>
    gpu.terminator
  }
  return
}

// -----

// Clusters of two blocks are numbered instead of blocks: 2 x 8 clusters are one group of eight rows.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> ({{.*}}floordiv 16{{.*}})>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0, s1] -> (((s0 + s1 * 2) mod 16) floordiv 8)>
// CHECK-LABEL: func.func @clusters(
// CHECK: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c2, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c8, %{{[^)]*}} = %c1)
// CHECK: [[x:%.+]] = gpu.cluster_id x
// CHECK-NEXT: [[y:%.+]] = gpu.cluster_id y
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[x]], [[y]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[x]], [[y]]]
// CHECK: memref.load %A{{\[}}[[i]], [[j]], %{{.*}}]
// CHECK: // -----
func.func @clusters(%A: memref<8x2x2xf16>, %B: memref<8x2x2xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c2, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c8, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.cluster_id x
    %y = gpu.cluster_id y
    %rank = gpu.cluster_block_id x
    %0 = memref.load %A[%y, %x, %rank] : memref<8x2x2xf16>
    memref.store %0, %B[%y, %x, %rank] : memref<8x2x2xf16>
    gpu.terminator
  }
  return
}

// -----

// A grid whose size is not known: there is nothing to number blocks by.
func.func @grid_from_argument(%n: index, %A: memref<64xf16>, %B: memref<64xf16>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.rasterize_blocks: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %0 = memref.load %A[%x] : memref<64xf16>
    memref.store %0, %B[%y] : memref<64xf16>
    gpu.terminator
  }
  return
}

// -----

// The tiles of each matmul of a batch are numbered as those of one: the number along z stays.
// CHECK-LABEL: func.func @batch(
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c3)
// CHECK: [[x:%.+]] = gpu.block_id x
// CHECK-NEXT: [[y:%.+]] = gpu.block_id y
// CHECK: [[j:%.+]] = affine.apply #{{.*}}()[[[x]], [[y]]]
// CHECK: [[i:%.+]] = affine.apply #{{.*}}()[[[x]], [[y]]]
// CHECK: [[z:%.+]] = gpu.block_id z
// CHECK: memref.load %A{{\[}}[[z]], [[i]]]
// CHECK: memref.load %A{{\[}}[[z]], [[j]]]
func.func @batch(%A: memref<3x64xf16>, %B: memref<3x64xf16>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c8, %gz = %c3)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %z = gpu.block_id z
    %0 = memref.load %A[%z, %y] : memref<3x64xf16>
    %1 = memref.load %A[%z, %x] : memref<3x64xf16>
    memref.store %0, %B[%z, %x] : memref<3x64xf16>
    memref.store %1, %B[%z, %y] : memref<3x64xf16>
    gpu.terminator
  }
  return
}
