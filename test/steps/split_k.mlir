// Several blocks divide the steps of k of a tile, leave their sums where the others find them, and, once all have, each
// adds up the parts of its share of the tile, in order, and writes C.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 512 --n 512 --k 4096
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --set persistent_blocks=0 --set epilogue=registers --set block_n=128 --through split_k
// RUN: %{payload} | %{opt} --set split_k=4 | FileCheck %s
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} --set split_k=7 | FileCheck %s --check-prefix=ROUNDED
// RUN: %stepladder payload matmul --m 500 --n 504 --k 1000 | %{opt} --set split_k=4 | FileCheck %s --check-prefix=RAGGED
// RUN: %{payload} | %{opt} --set split_k=4 --set split_k_workspace=memory | FileCheck %s --check-prefix=MEMORY
// RUN: %{payload} | %{opt} --set split_k=10 --set split_k_workspace=memory --set cluster_m=2 --set cluster_n=2 --set raster_group=1 | FileCheck %s --check-prefix=CLUSTERS
// RUN: %stepladder payload matmul --m 500 --n 504 --k 1000 | %{opt} --set split_k=4 --set split_k_workspace=memory | FileCheck %s --check-prefix=EDGES
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma --set persistent_blocks=0 --through split_k -o %t.one
// RUN: FileCheck %s --input-file %t.one --check-prefix=ONE
// RUN: %stepladder payload batch_matmul --batch 3 --m 512 --n 512 --k 4096 | %{opt} --set split_k=4 --set split_k_workspace=memory --set raster_group=1 | FileCheck %s --check-prefix=BATCH

// 64 steps, 16 a part; 4 x 4 tiles of four blocks each.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 1024)>
// CHECK-DAG: #[[end:.+]] = affine_map<()[s0] -> (4096, s0 * 1024 + 1024)>
// CHECK-DAG: #[[first:.+]] = affine_map<()[s0, s1] -> (s0 * 256 + s1)>
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (s0 floordiv 32)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 4 - (s0 floordiv 32) * 128)>
// CHECK-DAG: #[[place:.+]] = affine_map<()[s0] -> (s0 * 4 + (s0 floordiv 32) * 8)>
// CHECK: gpu.launch clusters({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c4, %{{.*}} = %c1) threads({{.*}}) in (%{{.*}} = %c256,
// 32 bytes behind each row of sums.
// CHECK: [[sums:%.+]] = memref.alloc() {split_k_workspace} : memref<128x136xf32, #gpu.address_space<workgroup>>
// CHECK: [[part:%.+]] = gpu.cluster_block_id x
// CHECK-DAG: [[from:%.+]] = affine.apply #[[begin]]()[[[part]]]
// CHECK-DAG: [[to:%.+]] = affine.min #[[end]]()[[[part]]]
// No part is empty, which LLVM is told.
// CHECK: [[some:%.+]] = arith.cmpi slt, [[from]], [[to]]
// CHECK-NEXT: llvm.intr.assume [[some]]
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
// RAGGED: nvvm.cluster.wait
// RAGGED: scf.for [[unit:%.+]] = %{{.*}} to %c4096 step %c1024
// RAGGED: [[i:%.+]] = affine.apply {{.*}}[[[unit]]]
// RAGGED: [[j:%.+]] = affine.apply {{.*}}[[[unit]]]
// RAGGED: [[row_inside:%.+]] = arith.cmpi ult, [[i]],
// RAGGED-NEXT: scf.if [[row_inside]]
// RAGGED-COUNT-4: llvm.load
// RAGGED: [[column_inside:%.+]] = arith.cmpi ult, [[j]],
// RAGGED-NEXT: scf.if [[column_inside]]
// RAGGED: vector.store

// In memory: four parts of a tile are four neighbours in the grid, which is otherwise as it was.
// MEMORY-DAG: #[[part_of:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// Units of four: 32 lanes of 8 rows and 16 columns, 8 such beside each other, and two halves of 16 rows.
// MEMORY-DAG: #[[row:.+]] = affine_map<()[s0] -> ((s0 floordiv 256) * 8 + (s0 mod 32) floordiv 4)>
// MEMORY-DAG: #[[left:.+]] = affine_map<()[s0] -> (s0 * 2 + (s0 floordiv 32) * 16 - ((s0 floordiv 32) floordiv 8) * 128 - (s0 floordiv 4) * 8)>
// MEMORY-DAG: #[[right:.+]] = affine_map<()[s0] -> (s0 * 2 + (s0 floordiv 32) * 16 - ((s0 floordiv 32) floordiv 8) * 128 - (s0 floordiv 4) * 8 + 8)>
// MEMORY-DAG: memref.global "private" @split_k_workspace : memref<16x4x4096x4xf32, #gpu.address_space<global>> = uninitialized
// MEMORY-DAG: memref.global "private" @split_k_semaphores : memref<16xi32, #gpu.address_space<global>> = dense<0>
// MEMORY: gpu.launch blocks({{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c4, %{{.*}} = %c1) threads({{.*}}) in (%{{.*}} = %c256,
// MEMORY-NOT: cluster
// MEMORY: %block_id_x = gpu.block_id x
// MEMORY: [[part:%.+]] = affine.apply #[[part_of]]()[%block_id_x]
// MEMORY: scf.for
// MEMORY: [[sums:%.+]] = memref.get_global @split_k_workspace
// MEMORY-NEXT: [[own:%.+]] = memref.subview [[sums]][[[place:%.+]], [[part]], 0, 0] [1, 1, 4096, 4]
// MEMORY: [[held:%.+]] = memref.expand_shape {{.*}} into memref<8x2x8x8x2x4x2xf32, #gpu.address_space<workgroup>>
// MEMORY: [[units:%.+]] = memref.expand_shape [[own]]
// MEMORY-NEXT: linalg.transpose ins([[held]] : {{.*}}) outs([[units]] : {{.*}}) permutation = [0, 1, 3, 2, 5, 4, 6]
// All threads have written, one counts, up to twice the parts, and waits for the other half; all read.
// MEMORY-NEXT: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// MEMORY: scf.if
// MEMORY: memref.get_global @split_k_semaphores
// MEMORY: [[before:%.+]] = nvvm.inline_ptx "atom.release.gpu.global.inc.u32 {$w0}, [{$r0}], {$r1};" ro([[address:%.+]], %c7_i32 : i64, i32)
// MEMORY-NEXT: nvvm.inline_ptx "{{.*}}ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ge.xor.u32 p, now, {$r2}, q; @!p bra WAIT;}" ro([[address]], [[before]], %c4_i32 : i64, i32, i32)
// MEMORY-NEXT: }
// MEMORY-NEXT: nvvm.barrier id = %c1_i32 number_of_threads = %c256_i32
// MEMORY: scf.for [[unit:%.+]] = %{{.*}} to %c4096 step %c1024
// MEMORY-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[unit]]]
// MEMORY-DAG: [[j:%.+]] = affine.apply #[[left]]()[[[unit]]]
// MEMORY-DAG: [[next:%.+]] = affine.apply #[[right]]()[[[unit]]]
// MEMORY: [[parts:%.+]] = memref.subview [[sums]][[[place]], 0, 0, 0] [1, 4, 4096, 4]
// MEMORY: [[part0:%.+]] = vector.load [[parts]][%c0, [[unit]], %c0] {alignment = 16 : i64}
// MEMORY: [[part3:%.+]] = vector.load [[parts]][%c3, [[unit]], %c0] {alignment = 16 : i64}
// MEMORY: [[sum:%.+]] = arith.addf %{{.*}}, [[part3]]
// MEMORY: vector.shuffle [[sum]], %{{.*}} [0, 1]
// MEMORY: vector.store %{{.*}}[[[i]], [[j]]] {alignment = 8 : i64}
// MEMORY: vector.shuffle [[sum]], %{{.*}} [2, 3]
// MEMORY: vector.store %{{.*}}[[[i]], [[next]]] {alignment = 8 : i64}
// MEMORY-NOT: nvvm.cluster
// MEMORY: gpu.terminator

// Ten parts of a cluster's tiles are ten clusters beside each other.
// CLUSTERS-DAG: affine_map<()[s0] -> (s0 mod 10)>
// CLUSTERS-DAG: memref.global "private" @split_k_workspace : memref<16x10x4096x4xf32
// CLUSTERS: gpu.launch clusters({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c1, %{{.*}} = %c1) blocks({{.*}}) in (%{{.*}} = %c80, %{{.*}} = %c2, %{{.*}} = %c1)
// CLUSTERS: gpu.cluster_id x

// EDGES: arith.cmpi ult
// EDGES-NEXT: scf.if
// EDGES-COUNT-4: vector.load %{{.*}} {alignment = 16 : i64}
// EDGES: arith.cmpi ult
// EDGES-NEXT: scf.if
// EDGES: vector.store
// EDGES: arith.cmpi ult
// EDGES-NEXT: scf.if
// EDGES: vector.store

// ONE-NOT: {{split_k_workspace|cluster}}
// ONE: gpu.launch blocks
// ONE-NOT: {{split_k_workspace|cluster}}

// Each tile of each matmul of a batch has a place of its own in the workspace: 3 x 4 x 4 of them.
// BATCH-DAG: #[[tile:.+]] = affine_map<()[s0, s1, s2] -> (s0 * 16 + s1 * 4 + s2 floordiv 4)>
// BATCH: memref.global {{.*}} : memref<48xi32
// BATCH: memref.global {{.*}} : memref<48x4x4096x4xf32
// BATCH: gpu.launch blocks({{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c4, %{{.*}} = %c3)
// BATCH: [[x:%.+]] = gpu.block_id x
// BATCH: [[y:%.+]] = gpu.block_id y
// BATCH: [[z:%.+]] = gpu.block_id z
// BATCH: affine.apply #[[tile]]()[[[z]], [[y]], [[x]]]
