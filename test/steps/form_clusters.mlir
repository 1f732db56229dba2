// Neighbouring blocks form clusters: a cluster is a row of the new grid, its blocks numbered down its columns first.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma --through form_clusters
// RUN: %stepladder payload matmul --m 1024 --n 1024 --k 512 -o %t.mlir
// RUN: %{opt} --set cluster_m=2 | FileCheck %s
// RUN: %{opt} --set cluster_n=2 | FileCheck %s --check-prefix=COLUMNS
// RUN: %{opt} --set cluster_m=4 --set cluster_n=2 | FileCheck %s --check-prefix=BOTH
// RUN: %{opt} --without form_clusters,multicast_tiles -o %t.without
// RUN: FileCheck %s --input-file %t.without --check-prefix=WITHOUT
// RUN: %{opt} -o %t.one
// RUN: diff %t.one %t.without
// RUN: %stepladder payload batch_matmul --batch 3 --m 1024 --n 1024 --k 512 -o %t.mlir
// RUN: %{opt} --set cluster_m=2 | FileCheck %s --check-prefix=BATCH

// 8 x 4 tiles. Row of tiles: 2 * cluster + rank mod 2, here (rank - rank floordiv 2 * 2).
// CHECK: #[[row:.+]] = affine_map<()[s0, s1] -> (s0 * 256 + s1 * 128 - (s1 floordiv 2) * 256)>
// CHECK: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 * 256 + (s1 floordiv 2) * 256)>
// CHECK: gpu.launch clusters({{.*}}) in (%{{.*}} = %c2, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c8, %{{.*}} = %c4, %{{.*}} = %c1)
// CHECK-NOT: gpu.block_id
// CHECK: [[x:%.+]] = gpu.cluster_id x
// CHECK: [[y:%.+]] = gpu.cluster_id y
// CHECK: [[rank:%.+]] = gpu.cluster_block_id x
// CHECK: [[i:%.+]] = affine.apply #[[row]]()[[[y]], [[rank]]]
// CHECK: [[j:%.+]] = affine.apply #[[column]]()[[[x]], [[rank]]]
// CHECK: memref.subview %C{{\[}}[[i]], [[j]]] [128, 256]
// CHECK-NOT: gpu.block_id

// COLUMNS: #[[row:.+]] = affine_map<()[s0] -> (s0 * 128)>
// COLUMNS: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 * 512 + s1 * 256)>
// COLUMNS: in (%{{.*}} = %c2, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c1)

// BOTH: #[[row:.+]] = affine_map<()[s0, s1] -> (s0 * 512 + s1 * 128 - (s1 floordiv 4) * 512)>
// BOTH: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 * 512 + (s1 floordiv 4) * 256)>
// BOTH: in (%{{.*}} = %c8, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c2, %{{.*}} = %c1)

// WITHOUT-NOT: cluster
// WITHOUT: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c1)
// WITHOUT: gpu.block_id x
// WITHOUT-NOT: cluster

// The blocks of a cluster compute tiles of one matmul of a batch, whose number stays that along z.
// BATCH: gpu.launch clusters({{.*}}) in (%{{.*}} = %c2, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c8, %{{.*}} = %c4, %{{.*}} = %c3)
// BATCH: [[b:%.+]] = gpu.block_id z
// BATCH: memref.subview %C{{\[}}[[b]], %{{.*}}, %{{.*}}] [1, 128, 256]
