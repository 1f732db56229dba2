// The blocks of a cluster divide the steps of k of a tile, write their sums to a workspace, and, once all have, each adds
// up the parts of its share of rows, in order, and writes C.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 512 --n 512 --k 4096
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --set blocks=0 --set epilogue=registers --set block_n=128 --through split_reduction
// RUN: %{payload} | %{opt} --set split_k=4 | FileCheck %s
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} --set split_k=8 | FileCheck %s --check-prefix=ROUNDED
// RUN: %stepladder payload matmul --m 500 --n 504 --k 1000 | %{opt} --set split_k=4 | FileCheck %s --check-prefix=RAGGED
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma --set blocks=0 --through split_reduction -o %t.one
// RUN: FileCheck %s --input-file %t.one --check-prefix=ONE

// 64 steps, 16 a part; 4 x 4 tiles of four blocks each.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 1024)>
// CHECK-DAG: #[[end:.+]] = affine_map<()[s0] -> (4096, s0 * 1024 + 1024)>
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> (s1 * 32 + s0 floordiv 32)>
// CHECK: memref.global "private" @partial_sums : memref<16x4x128x128xf32, #gpu.address_space<global>> = uninitialized {alignment = 16 : i64}
// CHECK: gpu.launch clusters({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c4, %{{.*}} = %c1)
// CHECK: [[part:%.+]] = gpu.cluster_block_id x
// CHECK-DAG: [[first:%.+]] = affine.apply #[[begin]]()[[[part]]]
// CHECK-DAG: [[last:%.+]] = affine.min #[[end]]()[[[part]]]
// Every part starts from zero; C is added once.
// CHECK: linalg.fill
// CHECK-NOT: linalg.copy {operand_c}
// CHECK: scf.for {{.*}} = [[first]] to [[last]] step %c64
// CHECK: [[all:%.+]] = memref.get_global @partial_sums
// CHECK: memref.subview [[all]][[[tile:%.+]], [[part]], 0, 0] [1, 1, 128, 128]
// CHECK-NEXT: linalg.copy
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// 32 rows of 32 times four neighbours.
// CHECK: scf.for [[unit:%.+]] = %thread_id_x to %c1024 step %c256
// CHECK: [[i:%.+]] = affine.apply #[[row]]()[[[unit]], [[part]]]
// CHECK: [[sum0:%.+]] = vector.load [[all]][[[tile]], %c0, [[i]], [[j:%.+]]] {alignment = 16 : i64}
// CHECK: [[part1:%.+]] = vector.load [[all]][[[tile]], %c1, [[i]], [[j]]]
// CHECK: [[sum1:%.+]] = arith.addf [[sum0]], [[part1]]
// CHECK: vector.load [[all]][[[tile]], %c2, [[i]], [[j]]]
// CHECK: vector.load [[all]][[[tile]], %c3, [[i]], [[j]]]
// CHECK: [[old:%.+]] = vector.load %{{[a-z_0-9]+}}[[[i]], [[j]]] {alignment = 16 : i64}
// CHECK: arith.addf [[old]]
// CHECK-NEXT: vector.store

// ROUNDED: @partial_sums : memref<16x8x128x128xf32
// ROUNDED-COUNT-7: arith.addf
// ROUNDED-NOT: arith.addf
// ROUNDED: arith.truncf {{.*}} : vector<4xf32> to vector<4xf16>
// ROUNDED-NEXT: vector.store {{.*}} {alignment = 8 : i64}

// Only what there is of C.
// RAGGED: nvvm.cluster.wait
// RAGGED: arith.cmpi ult
// RAGGED: arith.cmpi ult
// RAGGED: scf.if
// RAGGED: vector.store

// ONE-NOT: {{partial_sums|cluster}}
// ONE: gpu.launch blocks
// ONE-NOT: {{partial_sums|cluster}}

