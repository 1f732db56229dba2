// Blocks are numbered down columns of `raster` block rows: the grid stays, and the tile of a block follows from its number.
// Where `raster` does not divide the grid's height, the last group has fewer rows. With a group of one row, or left out,
// nothing changes.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 1024 --n 512 --k 32
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline mma_sync --through rasterize_blocks
// RUN: %{payload} -o %t.mlir
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set raster_group=4 | FileCheck %s --check-prefix=FOUR
// RUN: %{opt} --set block_m=256 | FileCheck %s --check-prefix=FOUR-HIGH
// RUN: %{opt} --without rasterize_blocks -o %t.without
// RUN: FileCheck %s --input-file %t.without --check-prefix=WITHOUT
// RUN: %{opt} --set raster_group=1 -o %t.one
// RUN: diff %t.one %t.without
// RUN: %stepladder payload matmul --m 384 --n 512 --k 32 -o %t.low.mlir
// RUN: %stepladder-opt %t.low.mlir --pipeline mma_sync --through rasterize_blocks | FileCheck %s --check-prefix=LOW
// RUN: %stepladder payload matmul --m 640 --n 512 --k 32 -o %t.odd.mlir
// RUN: %stepladder-opt %t.odd.mlir --pipeline mma_sync --set raster_group=2 --through rasterize_blocks | FileCheck %s --check-prefix=ODD
// RUN: %stepladder-opt %t.mlir --pipeline wmma --through rasterize_blocks -o %t.wmma
// RUN: diff %t.wmma %t.without
// RUN: %stepladder-opt %t.mlir --pipeline wmma --set raster_group=8 --through rasterize_blocks | FileCheck %s

// 4 x 8 blocks: one group of eight rows, in which block number / 8 is the column.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> ({{.*}}floordiv 32{{.*}})>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0, s1] -> ((((s0 + s1 * 4) mod 32) floordiv 8) * 128)>
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c1)
// CHECK: [[x:%.+]] = gpu.block_id x
// CHECK-NEXT: [[y:%.+]] = gpu.block_id y
// CHECK-NEXT: [[i:%.+]] = affine.apply #[[row]]()[[[x]], [[y]]]
// CHECK-NEXT: [[j:%.+]] = affine.apply #[[column]]()[[[x]], [[y]]]
// CHECK: memref.subview %A{{\[}}[[i]], 0] [128, 32]
// CHECK: memref.subview %B[0, [[j]]] [32, 128]
// CHECK: memref.subview %C{{\[}}[[i]], [[j]]] [128, 128]

// FOUR: affine_map<()[s0, s1] -> ((((s0 + s1 * 4) mod 16) floordiv 4) * 128)>

// 4 x 4 blocks of 256 rows, and raster is 8: groups of four.
// FOUR-HIGH: affine_map<()[s0, s1] -> ((((s0 + s1 * 4) mod 16) floordiv 4) * 128)>
// FOUR-HIGH: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c4, %{{.*}} = %c1)

// Three rows: one group of them.
// LOW: affine_map<()[s0, s1] -> ((((s0 + s1 * 4) mod 12) floordiv 3) * 128)>
// LOW-NOT: affine.min

// Five rows: two groups of two, and one of what is left.
// ODD-DAG: #[[within:.+]] = affine_map<()[s0, s1] -> ((s0 + s1 * 4) mod 8)>
// ODD-DAG: #[[height:.+]] = affine_map<()[s0, s1] -> (2, ((s0 + s1 * 4) floordiv 8) * -2 + 5)>
// ODD: [[x:%.+]] = gpu.block_id x
// ODD-NEXT: [[y:%.+]] = gpu.block_id y
// ODD-DAG: [[rows:%.+]] = affine.min #[[height]]()[[[x]], [[y]]]
// ODD-DAG: [[place:%.+]] = affine.apply #[[within]]()[[[x]], [[y]]]
// ODD: affine.delinearize_index [[place]] into ({{[0-9]+}}, [[rows]]) : index, index

// WITHOUT-NOT: {{mod|floordiv}}
// WITHOUT: #[[map:.+]] = affine_map<()[s0] -> (s0 * 128)>
// WITHOUT-NOT: affine_map
// WITHOUT: [[x:%.+]] = gpu.block_id x
// WITHOUT: [[y:%.+]] = gpu.block_id y
// WITHOUT: [[i:%.+]] = affine.apply #[[map]]()[[[y]]]
// WITHOUT: [[j:%.+]] = affine.apply #[[map]]()[[[x]]]
// WITHOUT: memref.subview %C{{\[}}[[i]], [[j]]] [128, 128]
