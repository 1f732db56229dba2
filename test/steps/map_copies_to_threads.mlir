// Each of the 128 threads copies 4 x 8 elements of A's tile and 4 x 8 of B's, neighbours next to each other in a row,
// and one barrier stands behind both copies.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through map_to_blocks | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through map_copies_to_threads | FileCheck %s
// RUN: %{opt} --through map_copies_to_threads --set block_m=64 --set block_k=64 | FileCheck %s --check-prefix=OTHER
// In the other pipelines where map_copies_cyclically is left out: the same, up to what came before.
// DEFINE: %{blocked} = --without map_copies_cyclically --set raster_group=1 --through map_copies_to_threads
// RUN: %{opt} --through map_copies_to_threads -o %t.mlir
// RUN: %{opt} %{blocked} --set prefetch=cp_async | diff - %t.mlir
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync %{blocked} | diff - %t.mlir
// Runs of sixteen elements, rows as they are stored.
// RUN: %stepladder payload matmul --m 256 --n 256 --k 256 --a-type i8 --b-type i8 --acc-type i32 --c-type i32 --a-layout column -o %t.i8.mlir
// RUN: %stepladder-opt %t.i8.mlir --pipeline mma_sync %{blocked} --set block_k=64 | FileCheck %s --check-prefix=I8

// BEFORE: linalg.copy {operand_a} ins({{.*}}) outs(%{{.*}} : memref<128x32xf16, #gpu.address_space<workgroup>>)
// BEFORE-NOT: gpu.barrier

// Four threads a row of A's tile, sixteen a row of B's.
// CHECK-DAG: #[[rows_a:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) * 4)>
// CHECK-DAG: #[[columns_a:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 4) * 32)>
// CHECK-DAG: #[[rows_b:.+]] = affine_map<()[s0] -> ((s0 floordiv 16) * 4)>
// CHECK-DAG: #[[columns_b:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 16) * 128)>
// CHECK: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c128, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: scf.for
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK-DAG: [[row_a:%.+]] = affine.apply #[[rows_a]]()[[[t]]]
// CHECK-DAG: [[column_a:%.+]] = affine.apply #[[columns_a]]()[[[t]]]
// CHECK: memref.subview %{{.*}}{{\[}}[[row_a]], [[column_a]]] [4, 8] [1, 1]
// CHECK: memref.subview %{{.*}}{{\[}}[[row_a]], [[column_a]]] [4, 8] [1, 1] : {{.*}}workgroup
// CHECK: linalg.copy {operand_a} ins(%{{.*}} : memref<4x8xf16,
// CHECK-NOT: gpu.barrier
// CHECK-DAG: [[row_b:%.+]] = affine.apply #[[rows_b]]()[[[t]]]
// CHECK-DAG: [[column_b:%.+]] = affine.apply #[[columns_b]]()[[[t]]]
// CHECK: memref.subview %{{.*}}{{\[}}[[row_b]], [[column_b]]] [4, 8] [1, 1]
// CHECK: linalg.copy {operand_b} ins(%{{.*}} : memref<4x8xf16,
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: linalg.matmul
// CHECK-NOT: gpu.barrier

// Eight threads a row of A's tile, which lies by columns, 64 rows of 128; as many a row of B's, 64 x 128.
// I8-DAG: #[[rows:.+]] = affine_map<()[s0] -> ((s0 floordiv 8) * 4)>
// I8-DAG: #[[columns:.+]] = affine_map<()[s0] -> (s0 * 16 - (s0 floordiv 8) * 128)>
// I8-DAG: [[row:%.+]] = affine.apply #[[rows]]()
// I8-DAG: [[column:%.+]] = affine.apply #[[columns]]()
// I8: memref.subview %{{.*}}{{\[}}[[row]], [[column]]] [4, 16] [1, 1] : memref<64x128xi8, #gpu.address_space<workgroup>>
// I8: linalg.copy {operand_a} ins(%{{.*}} : memref<4x16xi8,
// I8-NOT: gpu.barrier
// I8: linalg.copy {operand_b} ins(%{{.*}} : memref<4x16xi8,
// I8-NEXT: gpu.barrier
// I8-NOT: {{linalg.copy|gpu.barrier}}

// Two warps, 64 threads: eight threads a row of A's tile, 64 / 8 = 8 rows at a time and 8 rows a thread.
// OTHER: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c64, %{{.*}} = %c1, %{{.*}} = %c1)
// OTHER: linalg.copy {operand_a} ins(%{{.*}} : memref<8x8xf16,
// OTHER: linalg.copy {operand_b} ins(%{{.*}} : memref<16x8xf16,
