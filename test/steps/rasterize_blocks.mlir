// Blocks are numbered down columns of `raster` block rows. The grid is 2 x 2 blocks: groups of 8 rows become groups of 2,
// the largest that divide it.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through rasterize_blocks | FileCheck %s
// RUN: %{opt} --through map_copies_cyclically --without rasterize_blocks | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --through rasterize_blocks --set raster=1 | FileCheck %s --check-prefix=WITHOUT

// CHECK-DAG: [[X:#map.*]] = affine_map<()[s0, s1] -> ((((s0 + s1 * 2) mod 4) floordiv 2) * 128)>
// CHECK-DAG: [[Y:#map.*]] = affine_map<()[s0, s1] -> (s0 * 128 + ((s0 + s1 * 2) floordiv 4) * 256 - (s0 floordiv 2) * 256)>
// CHECK: gpu.launch
// CHECK: [[row:%.+]] = affine.apply [[Y]]()[%block_id_x, %block_id_y]
// CHECK: [[column:%.+]] = affine.apply [[X]]()[%block_id_x, %block_id_y]
// CHECK: memref.subview %A{{\[}}[[row]], 0]
// CHECK: memref.subview %B[0, [[column]]

// WITHOUT: gpu.launch
// WITHOUT: affine.apply #{{.*}}()[%block_id_y]
// WITHOUT: affine.apply #{{.*}}()[%block_id_x]
