// A thread copies rows that follow each other, neighbours next to each other in a row, and one barrier stands behind
// both copies.
//
// DEFINE: %{sizes} = --set block_m=32 --set block_n=64 --set block_k=32 --set warp_m=32
// DEFINE: %{step} = --step map_copies_to_threads %{sizes} --split-input-file
// RUN: %stepladder-opt %s --pipeline wmma %{step} --set warp_n=32 | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wmma %{step} --set warp_n=64 | FileCheck %s --check-prefix=ONE-WARP
// RUN: %stepladder-opt %s --pipeline mma_sync --without map_copies_cyclically %{step} --set warp_n=32 \
// RUN:   | FileCheck %s --check-prefixes=CHECK,I8

// 64 threads: four a row of A's tile, eight a row of B's.
// CHECK-DAG: #[[rows_a:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) * 2)>
// CHECK-DAG: #[[columns_a:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 4) * 32)>
// CHECK-DAG: #[[rows_b:.+]] = affine_map<()[s0] -> ((s0 floordiv 8) * 4)>
// CHECK-DAG: #[[columns_b:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 8) * 64)>
// CHECK-LABEL: func.func @matmul(
// CHECK: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c64, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: [[A:%.+]] = memref.alloc() {operand_a}
// CHECK: [[B:%.+]] = memref.alloc() {operand_b}
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK-DAG: [[row_a:%.+]] = affine.apply #[[rows_a]]()[[[t]]]
// CHECK-DAG: [[column_a:%.+]] = affine.apply #[[columns_a]]()[[[t]]]
// CHECK: [[from:%.+]] = memref.subview %A{{\[}}[[row_a]], [[column_a]]] [2, 8] [1, 1]
// CHECK: [[to:%.+]] = memref.subview [[A]]{{\[}}[[row_a]], [[column_a]]] [2, 8] [1, 1]
// CHECK: linalg.copy {operand_a} ins([[from]] : memref<2x8xf16, {{.*}}) outs([[to]] :
// CHECK-NOT: gpu.barrier
// CHECK-DAG: [[row_b:%.+]] = affine.apply #[[rows_b]]()[[[t]]]
// CHECK-DAG: [[column_b:%.+]] = affine.apply #[[columns_b]]()[[[t]]]
// CHECK: [[from:%.+]] = memref.subview %B{{\[}}[[row_b]], [[column_b]]] [4, 8] [1, 1]
// CHECK: [[to:%.+]] = memref.subview [[B]]{{\[}}[[row_b]], [[column_b]]] [4, 8] [1, 1]
// CHECK: linalg.copy {operand_b} ins([[from]] : memref<4x8xf16, {{.*}}) outs([[to]] :
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: linalg.matmul
// CHECK-NOT: {{linalg.copy|gpu.barrier}}
// CHECK: // -----

// ONE-WARP: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c32, %{{.*}} = %c1, %{{.*}} = %c1)
// ONE-WARP: linalg.copy {operand_a} ins(%{{.*}} : memref<4x8xf16,
// ONE-WARP: linalg.copy {operand_b} ins(%{{.*}} : memref<8x8xf16,
#space = #gpu.address_space<workgroup>
func.func @matmul(%A: memref<32x32xf16>, %B: memref<32x64xf16>, %C: memref<32x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<32x32xf16, #space>
    %b = memref.alloc() {operand_b} : memref<32x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<32x32xf16>) outs(%a : memref<32x32xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<32x64xf16>) outs(%b : memref<32x64xf16, #space>)
    linalg.matmul ins(%a, %b : memref<32x32xf16, #space>, memref<32x64xf16, #space>)
                  outs(%C : memref<32x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// Runs of sixteen elements, rows as they are stored: two threads a row of A's tile, four a row of B's.
// I8-DAG: #[[rows_a:.+]] = affine_map<()[s0] -> (s0 floordiv 2)>
// I8-DAG: #[[columns_a:.+]] = affine_map<()[s0] -> (s0 * 16 - (s0 floordiv 2) * 32)>
// I8-DAG: #[[rows_b:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) * 2)>
// I8-LABEL: func.func @column_major_i8(
// I8-DAG: [[row:%.+]] = affine.apply #[[rows_a]]()
// I8-DAG: [[column:%.+]] = affine.apply #[[columns_a]]()
// I8: memref.subview %A{{\[}}[[row]], [[column]]] [1, 16] [1, 1]
// I8: linalg.copy {operand_a} ins(%{{.*}} : memref<1x16xi8,
// I8-NOT: gpu.barrier
// I8: [[row:%.+]] = affine.apply #[[rows_b]]()
// I8: linalg.copy {operand_b} ins(%{{.*}} : memref<2x16xi8,
// I8-NEXT: gpu.barrier
// I8-NOT: {{linalg.copy|gpu.barrier}}
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @column_major_i8(%A: memref<32x32xi8>, %B: memref<32x64xi8>, %C: memref<32x64xi32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<32x32xi8, #space>
    %b = memref.alloc() {operand_b} : memref<32x64xi8, #space>
    linalg.copy {operand_a} ins(%A : memref<32x32xi8>) outs(%a : memref<32x32xi8, #space>)
    linalg.copy {operand_b} ins(%B : memref<32x64xi8>) outs(%b : memref<32x64xi8, #space>)
    linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : memref<32x32xi8, #space>, memref<32x64xi8, #space>)
                  outs(%C : memref<32x64xi32>)
    gpu.terminator
  }
  return
}
