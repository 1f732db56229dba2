// Each of the 128 threads copies four runs of eight elements of A's tile and four of B's. The rows of a thread are a pass
// of the whole block apart: 32 rows of A, 8 rows of B. Exactly one barrier, behind all of them and in front of the matmul.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through rasterize_blocks | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through map_copies_cyclically -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=COUNT
// RUN: %{opt} --through map_copies_cyclically --set block_m=64 --set block_k=64 | FileCheck %s --check-prefix=OTHER
// The step of wmma with asynchronous copies, and not of wmma with copies through registers.
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --set prefetch=cp_async --set raster_group=8 --through map_copies_cyclically | diff - %t.mlir

// BEFORE: linalg.copy {operand_a} ins({{.*}}) outs(%{{.*}} : memref<128x32xf16, #gpu.address_space<workgroup>>)
// BEFORE: linalg.copy {operand_b} ins({{.*}}) outs(%{{.*}} : memref<32x128xf16, #gpu.address_space<workgroup>>)
// BEFORE-NOT: gpu.barrier

// Four threads a row of A's tile, sixteen a row of B's, one row each in a pass.
// CHECK-DAG: #[[row_a:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK-DAG: #[[column_a:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 4) * 32)>
// CHECK-DAG: #[[row_b:.+]] = affine_map<()[s0] -> (s0 floordiv 16)>
// CHECK-DAG: #[[column_b:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 16) * 128)>
// CHECK: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c128, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: [[A:%.+]] = memref.alloc() {operand_a}
// CHECK: [[B:%.+]] = memref.alloc() {operand_b}
// CHECK: scf.for
// CHECK: [[pass_a:%.+]] = memref.subview [[A]][0, 0] [32, 32] [1, 1]
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row_a]]()[[[t]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column_a]]()[[[t]]]
// CHECK: [[to:%.+]] = memref.subview [[pass_a]]{{\[}}[[i]], [[j]]] [1, 8] [1, 1]
// CHECK: linalg.copy {operand_a} ins(%{{.*}} : memref<1x8xf16, {{.*}}) outs([[to]] :
// CHECK: memref.subview [[A]][32, 0] [32, 32] [1, 1]
// CHECK: linalg.copy {operand_a}
// CHECK: memref.subview [[A]][64, 0] [32, 32] [1, 1]
// CHECK: linalg.copy {operand_a}
// CHECK: [[pass_a:%.+]] = memref.subview [[A]][96, 0] [32, 32] [1, 1]
// CHECK: [[to:%.+]] = memref.subview [[pass_a]]{{\[}}[[i]], [[j]]] [1, 8] [1, 1]
// CHECK: linalg.copy {operand_a} ins(%{{.*}}) outs([[to]] :
// CHECK: [[pass_b:%.+]] = memref.subview [[B]][0, 0] [8, 128] [1, 1]
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row_b]]()[[[t]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column_b]]()[[[t]]]
// CHECK: [[to:%.+]] = memref.subview [[pass_b]]{{\[}}[[i]], [[j]]] [1, 8] [1, 1]
// CHECK: linalg.copy {operand_b} ins(%{{.*}} : memref<1x8xf16, {{.*}}) outs([[to]] :
// CHECK: memref.subview [[B]][8, 0] [8, 128] [1, 1]
// CHECK: linalg.copy {operand_b}
// CHECK: memref.subview [[B]][16, 0] [8, 128] [1, 1]
// CHECK: linalg.copy {operand_b}
// CHECK: memref.subview [[B]][24, 0] [8, 128] [1, 1]
// CHECK: linalg.copy {operand_b}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: linalg.matmul

// COUNT-NOT: gpu.barrier
// COUNT-COUNT-8: linalg.copy
// COUNT-NOT: linalg.copy
// COUNT: gpu.barrier
// COUNT-NOT: {{linalg.copy|gpu.barrier}}

// Two warps, 64 threads: eight a row of A's tile, in eight passes of eight rows; B in sixteen passes of four rows.
// OTHER: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c64, %{{.*}} = %c1, %{{.*}} = %c1)
// OTHER: memref.subview %{{.*}}[56, 0] [8, 64] [1, 1]
// OTHER: linalg.copy {operand_a}
// OTHER-NOT: linalg.copy {operand_a}
// OTHER-COUNT-16: linalg.copy {operand_b}
// OTHER-NEXT: gpu.barrier
// OTHER-NOT: gpu.barrier
