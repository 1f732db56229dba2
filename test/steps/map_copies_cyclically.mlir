// Each thread copies runs of eight elements of A's and B's tile, in rows that are a pass of the whole block apart.
// Exactly one barrier, behind all of them and in front of the matmul.
//
// DEFINE: %{sizes} = --set block_m=32 --set block_n=64 --set block_k=32 --set warp_m=32
// DEFINE: %{step} = --step map_copies_cyclically %{sizes} --split-input-file --verify-diagnostics
// RUN: %stepladder-opt %s --pipeline mma_sync %{step} --set warp_n=32 | FileCheck %s --check-prefixes=CHECK,I8
// RUN: %stepladder-opt %s --pipeline mma_sync %{step} --set warp_n=64 | FileCheck %s --check-prefix=ONE-WARP
// RUN: %stepladder-opt %s --pipeline wmma --set prefetch=cp_async %{step} --set warp_n=32 | FileCheck %s

// 64 threads: four a row of A's tile, eight a row of B's, one row each in a pass.
// CHECK-DAG: #[[row_a:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK-DAG: #[[column_a:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 4) * 32)>
// CHECK-DAG: #[[row_b:.+]] = affine_map<()[s0] -> (s0 floordiv 8)>
// CHECK-DAG: #[[column_b:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 8) * 64)>
// CHECK-LABEL: func.func @matmul(
// CHECK: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c64, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: [[A:%.+]] = memref.alloc() {operand_a}
// CHECK: [[B:%.+]] = memref.alloc() {operand_b}
// CHECK: [[pass_a:%.+]] = memref.subview [[A]][0, 0] [16, 32] [1, 1]
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row_a]]()[[[t]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column_a]]()[[[t]]]
// CHECK: [[to:%.+]] = memref.subview [[pass_a]]{{\[}}[[i]], [[j]]] [1, 8] [1, 1]
// CHECK: linalg.copy {operand_a} ins(%{{.*}} : memref<1x8xf16, {{.*}}) outs([[to]] :
// CHECK: [[pass_a:%.+]] = memref.subview [[A]][16, 0] [16, 32] [1, 1]
// CHECK: [[to:%.+]] = memref.subview [[pass_a]]{{\[}}[[i]], [[j]]] [1, 8] [1, 1]
// CHECK: linalg.copy {operand_a} ins(%{{.*}}) outs([[to]] :
// CHECK-NOT: {{operand_a|gpu.barrier}}
// CHECK: [[pass_b:%.+]] = memref.subview [[B]][0, 0] [8, 64] [1, 1]
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row_b]]()[[[t]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column_b]]()[[[t]]]
// CHECK: [[to:%.+]] = memref.subview [[pass_b]]{{\[}}[[i]], [[j]]] [1, 8] [1, 1]
// CHECK: linalg.copy {operand_b} ins(%{{.*}} : memref<1x8xf16, {{.*}}) outs([[to]] :
// CHECK: memref.subview [[B]][8, 0] [8, 64] [1, 1]
// CHECK: linalg.copy {operand_b}
// CHECK: memref.subview [[B]][16, 0] [8, 64] [1, 1]
// CHECK: linalg.copy {operand_b}
// CHECK: memref.subview [[B]][24, 0] [8, 64] [1, 1]
// CHECK: linalg.copy {operand_b}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: linalg.matmul
// CHECK-NOT: {{linalg.copy|gpu.barrier}}
// CHECK: // -----

// 32 threads: A's tile in four passes of eight rows, B's in four times two, of half of the columns each.
// ONE-WARP: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c32, %{{.*}} = %c1, %{{.*}} = %c1)
// ONE-WARP: memref.subview %{{.*}}[24, 0] [8, 32] [1, 1]
// ONE-WARP: linalg.copy {operand_a}
// ONE-WARP-NOT: linalg.copy {operand_a}
// ONE-WARP: memref.subview %{{.*}}[0, 0] [8, 32] [1, 1] : memref<8x64xf16
// ONE-WARP: linalg.copy {operand_b}
// ONE-WARP: memref.subview %{{.*}}[0, 32] [8, 32] [1, 1] : memref<8x64xf16
// ONE-WARP-COUNT-7: linalg.copy {operand_b}
// ONE-WARP-NEXT: gpu.barrier
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

// Runs of sixteen elements, rows as they are stored.
// I8-LABEL: func.func @column_major_i8(
// I8: memref.subview %A[%{{.*}}] [1, 16] [1, 1]
// I8: linalg.copy {operand_a} ins(%{{.*}} : memref<1x16xi8,
// I8-NOT: linalg.copy {operand_a}
// I8: memref.subview %{{.*}}[16, 0] [16, 64] [1, 1]
// I8: linalg.copy {operand_b} ins(%{{.*}} : memref<1x16xi8,
// I8-NEXT: gpu.barrier
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

// -----

func.func @outside(%A: memref<32x32xf16>, %B: memref<32x64xf16>, %C: memref<32x64xf32>) {
  // expected-error@+1 {{tc.insert_barrier: a barrier has no meaning outside a gpu.launch}}
  linalg.matmul ins(%A, %B : memref<32x32xf16>, memref<32x64xf16>) outs(%C : memref<32x64xf32>)
  return
}
