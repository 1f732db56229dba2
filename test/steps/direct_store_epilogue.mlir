// Each thread writes the sums it holds, pair by pair: no shared memory and no barrier. Only where tiles reach beyond C
// are rows and columns compared with its edges.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 1024 --n 1024 --k 512
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma_single_stage --through direct_store_epilogue
// RUN: %{payload} --no-accumulate | %{opt} -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=ALL
// RUN: %{payload} | %{opt} | FileCheck %s --check-prefix=ADD
// RUN: %{payload} --no-accumulate --c-type bf16 | %{opt} | FileCheck %s --check-prefix=ROUNDED
// RUN: %stepladder payload matmul --m 1000 --n 1000 --k 1000 --no-accumulate | %{opt} -o %t.ragged
// RUN: FileCheck %s --input-file %t.ragged --check-prefix=RAGGED
// RUN: FileCheck %s --input-file %t.ragged --check-prefix=EDGES
// RUN: %stepladder payload matmul --m 1024 --n 1000 --k 512 --no-accumulate | %{opt} | FileCheck %s --check-prefix=COLUMNS
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma --set epilogue=registers --set block_m=256 --set block_n=64 --through direct_store_epilogue | FileCheck %s --check-prefix=TALL
// RUN: %stepladder payload matmul --m 1024 --n 1001 --k 512 --b-layout column | %{opt} -o %t.odd
// RUN: FileCheck %s --input-file %t.odd --check-prefix=ODD
// RUN: FileCheck %s --input-file %t.odd --check-prefix=ONES
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma --set persistent_blocks=0 --set epilogue=registers --set block_n=64 --set split_k=2 --set split_k_workspace=memory --through direct_store_epilogue -o %t.units
// RUN: FileCheck %s --input-file %t.units --check-prefix=UNITS
// RUN: FileCheck %s --input-file %t.units --check-prefix=ALL-UNITS

// Row of a thread: 16 a warp, and lane / 4; column: twice lane mod 4.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 2 - (s0 floordiv 4) * 8)>
// CHECK-DAG: #[[own:.+]] = affine_map<()[s0] -> ((s0 floordiv 128) * 64)>
// CHECK-NOT: operand_c
// CHECK: [[C:%.+]] = memref.subview %C
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: [[own_row:%.+]] = affine.apply #[[own]]()[%thread_id_x]
// CHECK: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} : !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> to vector<1x16x2x2xf32>
// CHECK: [[in_own:%.+]] = affine.apply #[[row]]()[%thread_id_x]
// CHECK: [[i:%.+]] = arith.addi [[own_row]], [[in_own]]
// CHECK: [[j:%.+]] = affine.apply #[[column]]()[%thread_id_x]
// CHECK: [[pair:%.+]] = vector.extract [[held]][0, 0, 0] : vector<2xf32>
// CHECK-NEXT: vector.store [[pair]], [[C]]{{\[}}[[i]], [[j]]] {alignment = 8 : i64}
// CHECK: vector.extract [[held]][0, 1, 0]
// CHECK: vector.extract [[held]][0, 15, 1]

// ALL-NOT: {{linalg|warpgroup.mma.store|operand_c|ult}}
// ALL-COUNT-32: vector.store
// ALL-NOT: {{linalg|warpgroup.mma.store|operand_c|vector.store|ult}}

// ADD: [[old:%.+]] = vector.load [[tile:%.+]]{{\[}}[[i:%.+]], [[j:%.+]]] {alignment = 8 : i64}
// ADD-NEXT: [[new:%.+]] = arith.addf [[old]], %{{.*}} : vector<2xf32>
// ADD-NEXT: vector.store [[new]], [[tile]]{{\[}}[[i]], [[j]]] {alignment = 8 : i64}

// ROUNDED: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// ROUNDED-NEXT: vector.store {{.*}} {alignment = 4 : i64} {{.*}}xbf16

// RAGGED: [[rows:%.+]] = affine.min
// RAGGED: [[columns:%.+]] = affine.min
// RAGGED: [[inside:%.+]] = arith.cmpi ult, %{{.*}}, [[rows]]
// RAGGED-NEXT: scf.if [[inside]] {
// RAGGED: [[in_row:%.+]] = arith.cmpi ult, %{{.*}}, [[columns]]
// RAGGED: scf.if [[in_row]] {
// RAGGED-NEXT: vector.extract
// RAGGED-NEXT: vector.store
// Two rows, and sixteen columns in each.
// EDGES-COUNT-34: arith.cmpi ult
// EDGES-NOT: arith.cmpi ult

// Whole in rows.
// COLUMNS-COUNT-16: arith.cmpi ult
// COLUMNS-NOT: arith.cmpi ult

// Two times 64 rows a warpgroup.
// TALL: to vector<2x8x2x2xf32>
// TALL: vector.extract %{{.*}}[1, 7, 1]
// TALL-NOT: vector.extract

// Odd rows of C: a pair is not aligned in every second row, and the last one reaches into the next row. One by one.
// ODD: [[inside:%.+]] = arith.cmpi ult, [[column:%.+]], [[columns:%.+]] : index
// ODD-NEXT: scf.if [[inside]] {
// ODD: [[sum:%.+]] = vector.extract %{{.*}}[0, 0, 0, 0] : f32 from vector<1x16x2x2xf32>
// ODD-NEXT: [[old:%.+]] = memref.load %{{.*}}[%{{.*}}, [[column]]]
// ODD-NEXT: [[new:%.+]] = arith.addf [[old]], [[sum]] : f32
// ODD-NEXT: memref.store [[new]], %{{.*}}[%{{.*}}, [[column]]]
// ODD: arith.cmpi ult, [[next:%.+]], [[columns]] : index
// ODD: vector.extract %{{.*}}[0, 0, 0, 1] : f32 from vector<1x16x2x2xf32>
// ODD: memref.store %{{.*}}[%{{.*}}, [[next]]]
// ONES-NOT: vector.store
// ONES-COUNT-64: memref.store
// ONES-NOT: {{memref|vector}}.store

// Where a tile is wanted as threads hold it: what one holds of two fragments beside each other, for 32 threads in a row.
// Four groups of 16 columns, in upper and lower halves of 16 rows for each of four warps.
// UNITS-DAG: #[[first:.+]] = affine_map<()[s0] -> (s0 + (s0 floordiv 128) * 1024 + ((s0 mod 128) floordiv 32) * 256 - (s0 floordiv 32) * 32)>
// UNITS: nvgpu.warpgroup.mma
// UNITS: [[units:%.+]] = memref.subview {{.*}} to memref<2048x4xf32,
// UNITS: [[held:%.+]] = builtin.unrealized_conversion_cast %{{.*}} to vector<1x8x2x2xf32>
// UNITS: [[unit:%.+]] = affine.apply #[[first]]()[%thread_id_x]
// UNITS: [[left:%.+]] = vector.extract [[held]][0, 0, 0]
// UNITS: [[right:%.+]] = vector.extract [[held]][0, 1, 0]
// UNITS: [[both:%.+]] = vector.shuffle [[left]], [[right]] [0, 1, 2, 3]
// UNITS: vector.store [[both]], [[units]][[[unit]], %c0] {alignment = 16 : i64}
// UNITS: vector.extract [[held]][0, 2, 0]
// UNITS: [[beside:%.+]] = arith.addi [[unit]], %c32
// UNITS: vector.store %{{.*}}, [[units]][[[beside]], %c0]
// UNITS: vector.extract [[held]][0, 0, 1]
// UNITS: [[below:%.+]] = arith.addi [[unit]], %c128
// UNITS: vector.store %{{.*}}, [[units]][[[below]], %c0]

// ALL-UNITS-NOT: {{linalg|warpgroup.mma.store|expand_shape}}
// ALL-UNITS-COUNT-8: vector.store %{{.*}} {alignment = 16 : i64}
