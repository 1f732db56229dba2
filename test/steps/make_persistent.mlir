// Blocks that stay: as many as asked for, or tiles if those are fewer, each with a loop over the tiles. Shared tiles are
// made once, in front of it; 0 starts a block for each tile, as does leaving the step out.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma --set raster_group=1 --through make_persistent
// RUN: %stepladder payload matmul --m 1024 --n 1024 --k 512 -o %t.mlir
// RUN: %{opt} --set persistent_blocks=6 | FileCheck %s
// RUN: %{opt} | FileCheck %s --check-prefix=FEW
// RUN: %{opt} --set persistent_blocks=7 --set cluster_m=2 | FileCheck %s --check-prefix=CLUSTERS
// RUN: %{opt} --without make_persistent -o %t.without
// RUN: FileCheck %s --input-file %t.without --check-prefix=WITHOUT
// RUN: %{opt} --set persistent_blocks=0 -o %t.zero
// RUN: diff %t.zero %t.without
// RUN: %stepladder payload batch_matmul --batch 3 --m 1024 --n 1024 --k 512 -o %t.mlir
// RUN: %{opt} --set persistent_blocks=6 | FileCheck %s --check-prefix=BATCH

// 32 tiles in rows of four.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) * 128)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 256 - (s0 floordiv 4) * 1024)>
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c6, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: memref.alloc() {operand_c}
// CHECK: memref.alloc() {operand_a}
// CHECK: memref.alloc() {operand_b}
// CHECK-NOT: memref.alloc
// CHECK: [[block:%.+]] = gpu.block_id x
// CHECK-NEXT: scf.for [[tile:%.+]] = [[block]] to %c32 step %c6 {
// CHECK-NEXT: [[i:%.+]] = affine.apply #[[row]]()[[[tile]]]
// CHECK-NEXT: [[j:%.+]] = affine.apply #[[column]]()[[[tile]]]
// CHECK: memref.subview %C{{\[}}[[i]], [[j]]] [128, 256]
// CHECK: scf.for {{.*}} to %c512 step %c64
// CHECK: linalg.matmul
// CHECK-NOT: memref.alloc
// CHECK: gpu.terminator

// FEW: gpu.launch blocks({{.*}}) in (%{{.*}} = %c32, %{{.*}} = %c1, %{{.*}} = %c1)
// FEW: scf.for {{.*}} to %c32 step %c32

// Three clusters of two fit into seven blocks; a cluster takes one of the 16 pairs of tiles at a time.
// CLUSTERS: gpu.launch clusters({{.*}}) in (%{{.*}} = %c2, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c6, %{{.*}} = %c1, %{{.*}} = %c1)
// CLUSTERS: [[cluster:%.+]] = gpu.cluster_id x
// CLUSTERS: scf.for {{.*}} = [[cluster]] to %c16 step %c3

// WITHOUT: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c1)
// WITHOUT: gpu.block_id y
// WITHOUT: scf.for {{.*}} to %c512 step %c64
// WITHOUT-NOT: scf.for

// The tiles of three matmuls: all 32 of one before those of the next.
// BATCH-DAG: #[[matmul:.+]] = affine_map<()[s0] -> (s0 floordiv 32)>
// BATCH-DAG: #[[row:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) * 128 - ((s0 floordiv 4) floordiv 8) * 1024)>
// BATCH-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 256 - (s0 floordiv 4) * 1024)>
// BATCH: gpu.launch blocks({{.*}}) in (%{{.*}} = %c6, %{{.*}} = %c1, %{{.*}} = %c1)
// BATCH-NOT: gpu.block_id z
// BATCH: scf.for [[tile:%.+]] = %{{.*}} to %c96 step %c6 {
// BATCH: [[b:%.+]] = affine.apply #[[matmul]]()[[[tile]]]
// BATCH: [[i:%.+]] = affine.apply #[[row]]()[[[tile]]]
// BATCH: [[j:%.+]] = affine.apply #[[column]]()[[[tile]]]
// BATCH: memref.subview %C{{\[}}[[b]], [[i]], [[j]]] [1, 128, 256]
