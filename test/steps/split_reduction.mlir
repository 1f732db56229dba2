// The blocks of a cluster divide the steps of k of a tile, leave their sums in their shared memory, and, once all have,
// each adds up the parts of its share of the tile, in order, and writes C.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 512 --n 512 --k 4096
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --set blocks=0 --set epilogue=registers --set block_n=128 --through split_reduction
// RUN: %{payload} | %{opt} --set split_k=4 | FileCheck %s
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} --set split_k=7 | FileCheck %s --check-prefix=ROUNDED
// RUN: %stepladder payload matmul --m 500 --n 504 --k 1000 | %{opt} --set split_k=4 | FileCheck %s --check-prefix=RAGGED
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma --set blocks=0 --through split_reduction -o %t.one
// RUN: FileCheck %s --input-file %t.one --check-prefix=ONE

// 64 steps, 16 a part; 4 x 4 tiles of four blocks each.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 1024)>
// CHECK-DAG: #[[end:.+]] = affine_map<()[s0] -> (4096, s0 * 1024 + 1024)>
// CHECK-DAG: #[[first:.+]] = affine_map<()[s0, s1] -> (s0 * 256 + s1)>
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (s0 floordiv 32)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 4 - (s0 floordiv 32) * 128)>
// CHECK-DAG: #[[place:.+]] = affine_map<()[s0] -> (s0 * 4 + (s0 floordiv 32) * 8)>
// CHECK: gpu.launch clusters({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c4, %{{.*}} = %c1) threads({{.*}}) in (%{{.*}} = %c256,
// 32 bytes behind each row of sums.
// CHECK: [[sums:%.+]] = memref.alloc() {partial_sums} : memref<128x136xf32, #gpu.address_space<workgroup>>
// CHECK: [[part:%.+]] = gpu.cluster_block_id x
// CHECK-DAG: [[from:%.+]] = affine.apply #[[begin]]()[[[part]]]
// CHECK-DAG: [[to:%.+]] = affine.min #[[end]]()[[[part]]]
// Every part starts from zero; C is added once.
// CHECK: linalg.fill
// CHECK-NOT: linalg.copy {operand_c}
// CHECK: scf.for {{.*}} = [[from]] to [[to]] step %c64
// CHECK: memref.subview [[sums]][0, 0] [128, 128] [1, 1]
// CHECK-NEXT: linalg.copy
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: memref.extract_aligned_pointer_as_index [[sums]]
// CHECK: [[own:%.+]] = llvm.inttoptr {{.*}} to !llvm.ptr<3>
// CHECK-NEXT: [[tile0:%.+]] = nvvm.mapa [[own]], %c0_i32 : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-NEXT: [[tile1:%.+]] = nvvm.mapa [[own]], %c1_i32
// CHECK-NEXT: nvvm.mapa [[own]], %c2_i32
// CHECK-NEXT: [[tile3:%.+]] = nvvm.mapa [[own]], %c3_i32
// Neighbouring threads, then neighbouring blocks, take four neighbours each: 128 rows of 32 times four, by 4 x 256.
// CHECK: [[unit0:%.+]] = affine.apply #[[first]]()[[[part]], %thread_id_x]
// CHECK: scf.for [[unit:%.+]] = [[unit0]] to %c4096 step %c1024
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[unit]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[unit]]]
// CHECK-DAG: [[offset:%.+]] = affine.apply #[[place]]()[[[unit]]]
// CHECK: [[number:%.+]] = arith.index_cast [[offset]] : index to i64
// CHECK: [[there0:%.+]] = llvm.getelementptr [[tile0]][[[number]]] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
// CHECK: [[part0:%.+]] = llvm.load [[there0]] {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
// CHECK: [[there1:%.+]] = llvm.getelementptr [[tile1]]
// CHECK: [[part1:%.+]] = llvm.load [[there1]]
// CHECK: [[there3:%.+]] = llvm.getelementptr [[tile3]]
// CHECK: [[part3:%.+]] = llvm.load [[there3]]
// CHECK: [[sum1:%.+]] = arith.addf [[part0]], [[part1]]
// CHECK: [[sum:%.+]] = arith.addf %{{.*}}, [[part3]]
// CHECK: [[old:%.+]] = vector.load %{{[a-z_0-9]+}}[[[i]], [[j]]] {alignment = 16 : i64}
// CHECK: arith.addf [[old]], [[sum]]
// CHECK-NEXT: vector.store
// No block ends while others read its sums.
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: gpu.terminator

// Seven parts of ten steps, the last of four.
// ROUNDED: affine_map<()[s0] -> (4096, s0 * 640 + 640)>
// ROUNDED-COUNT-6: arith.addf
// ROUNDED-NOT: arith.addf
// ROUNDED: arith.truncf {{.*}} : vector<4xf32> to vector<4xf16>
// ROUNDED-NEXT: vector.store {{.*}} {alignment = 8 : i64}

// Only what there is of C: so many rows, and of a row so many columns.
// RAGGED-DAG: #[[to_units:.+]] = affine_map<()[s0] -> (s0 * 32)>
// RAGGED: nvvm.cluster.wait
// RAGGED: [[units:%.+]] = affine.apply #[[to_units]]()
// RAGGED: scf.for {{.*}} to [[units]] step
// RAGGED: arith.cmpi ult
// RAGGED: scf.if
// RAGGED: vector.store

// ONE-NOT: {{partial_sums|cluster}}
// ONE: gpu.launch blocks
// ONE-NOT: {{partial_sums|cluster}}

