// Threads copy vectors that divide the rows of A and B, and zeros beyond their edges. Only edges that there are have
// conditions.
//
// DEFINE: %{sizes} = --set block_m=32 --set block_n=32 --set block_k=32 --set warp_m=32 --set warp_n=32
// RUN: %stepladder-opt %s --pipeline mma_sync --step map_masked_copies %{sizes} --split-input-file --verify-diagnostics | FileCheck %s

// Rows of 20 elements of A: vectors of 4. Rows of 40 of B: vectors of 8. 32 threads: A's tile in eight passes of four
// rows, B's in four passes of eight.
// CHECK-LABEL: func.func @edges(
// CHECK: gpu.launch blocks({{.*}}) threads({{.*}}) in (%{{.*}} = %c32,
// CHECK: [[a:%.+]] = memref.alloc() {operand_a}
// CHECK: [[b:%.+]] = memref.alloc() {operand_b}
// CHECK-NOT: linalg.fill
// CHECK: [[in_rows:%.+]] = arith.cmpi slt, [[row:%.+]], %rows
// CHECK: [[in_depth:%.+]] = arith.cmpi slt, [[column:%.+]], %depth
// CHECK: [[inside:%.+]] = arith.andi [[in_rows]], [[in_depth]]
// CHECK: [[count:%.+]] = arith.select [[inside]], %c4, %c0
// CHECK: [[mask:%.+]] = vector.create_mask [[count]] : vector<4xi1>
// CHECK: [[value:%.+]] = vector.transfer_read %{{.*}}{{\[}}[[row]], [[column]]], %{{.*}}, [[mask]] {in_bounds = [true]} : {{.*}}, vector<4xf16>
// CHECK: vector.transfer_write [[value]], [[a]]{{\[}}[[row]], [[column]]] {in_bounds = [true]}
// CHECK-COUNT-7: vector.transfer_read {{.*}}vector<4xf16>
// B has edges along k only, and no column has a condition.
// CHECK-NOT: arith.andi
// CHECK-COUNT-4: vector.transfer_read {{.*}}, %{{.*}} {in_bounds = [true]} : {{.*}}, vector<8xf16>
// CHECK-NOT: vector.transfer_read
// CHECK: gpu.barrier
// CHECK-NEXT: linalg.matmul
#space = #gpu.address_space<workgroup>
func.func @edges(%A: memref<?x?xf16, strided<[20, 1]>>, %B: memref<?x32xf16, strided<[40, 1]>>, %C: memref<32x32xf32>,
                 %rows: index, %depth: index) attributes {size_m = 50, size_n = 40, size_k = 20, operand_bits = 16,
    a_layout = "row", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<32x32xf16, #space>
    %b = memref.alloc() {operand_b} : memref<32x32xf16, #space>
    %from_a = memref.subview %A[0, 0] [%rows, %depth] [1, 1] : memref<?x?xf16, strided<[20, 1]>> to memref<?x?xf16, strided<[20, 1]>>
    linalg.fill ins(%zero : f16) outs(%a : memref<32x32xf16, #space>)
    %to_a = memref.subview %a[0, 0] [%rows, %depth] [1, 1] : memref<32x32xf16, #space> to memref<?x?xf16, strided<[32, 1]>, #space>
    linalg.copy {operand_a} ins(%from_a : memref<?x?xf16, strided<[20, 1]>>) outs(%to_a : memref<?x?xf16, strided<[32, 1]>, #space>)
    %from_b = memref.subview %B[0, 0] [%depth, 32] [1, 1] : memref<?x32xf16, strided<[40, 1]>> to memref<?x32xf16, strided<[40, 1]>>
    linalg.fill ins(%zero : f16) outs(%b : memref<32x32xf16, #space>)
    %to_b = memref.subview %b[0, 0] [%depth, 32] [1, 1] : memref<32x32xf16, #space> to memref<?x32xf16, strided<[32, 1]>, #space>
    linalg.copy {operand_b} ins(%from_b : memref<?x32xf16, strided<[40, 1]>>) outs(%to_b : memref<?x32xf16, strided<[32, 1]>, #space>)
    linalg.matmul ins(%a, %b : memref<32x32xf16, #space>, memref<32x32xf16, #space>) outs(%C : memref<32x32xf32>)
    gpu.terminator
  }
  return
}

// -----

// Whole tiles of B are copied without conditions. The columns of A are rows of the tile as stored; fewer than a tile has
// are a constant.
// CHECK-LABEL: func.func @whole_tiles(
// CHECK: arith.cmpi slt, %{{.*}}, %c24
// CHECK: vector.transfer_read {{.*}}vector<8xf16>
// CHECK: memref.alloc() {operand_b}
// CHECK-NOT: {{arith.cmpi|create_mask}}
// CHECK-COUNT-4: vector.transfer_read %B{{.*}} {in_bounds = [true]} : memref<32x32xf16>, vector<8xf16>
// CHECK-NOT: vector.transfer_read
// CHECK: gpu.barrier
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @whole_tiles(%A: memref<32x24xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>)
    attributes {size_m = 24, size_n = 32, size_k = 32, operand_bits = 16,
    a_layout = "column", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<32x32xf16, #space>
    linalg.fill ins(%zero : f16) outs(%a : memref<32x32xf16, #space>)
    %to_a = memref.subview %a[0, 0] [32, 24] [1, 1] : memref<32x32xf16, #space> to memref<32x24xf16, strided<[32, 1]>, #space>
    linalg.copy {operand_a} ins(%A : memref<32x24xf16>) outs(%to_a : memref<32x24xf16, strided<[32, 1]>, #space>)
    %b = memref.alloc() {operand_b} : memref<32x32xf16, #space>
    linalg.copy {operand_b} ins(%B : memref<32x32xf16>) outs(%b : memref<32x32xf16, #space>)
    linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : memref<32x32xf16, #space>, memref<32x32xf16, #space>)
                  outs(%C : memref<32x32xf32>)
    gpu.terminator
  }
  return
}

// -----

// The sizes that are noted must be those of the matrices.
#space = #gpu.address_space<workgroup>
func.func @other_rows(%A: memref<17x20xf16>) attributes {size_m = 17, size_n = 32, size_k = 32, operand_bits = 16,
    a_layout = "row", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<32x32xf16, #space>
    %to_a = memref.subview %a[0, 0] [17, 20] [1, 1] : memref<32x32xf16, #space> to memref<17x20xf16, strided<[32, 1]>, #space>
    // expected-error@+1 {{tc.map_masked_copies: the rows of the matrix are no multiple of 8 elements}}
    linalg.copy {operand_a} ins(%A : memref<17x20xf16>) outs(%to_a : memref<17x20xf16, strided<[32, 1]>, #space>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @small_tile(%A: memref<17x16xf16>) attributes {size_m = 17, size_n = 32, size_k = 16, operand_bits = 16,
    a_layout = "row", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<17x16xf16, #space>
    // expected-error@+1 {{tc.map_masked_copies: a tile of 17 x 16 cannot be divided evenly among 32 threads in vectors of 8}}
    linalg.copy {operand_a} ins(%A : memref<17x16xf16>) outs(%a : memref<17x16xf16, #space>)
    gpu.terminator
  }
  return
}


// -----

// A row of a tile is more than the threads copy at once, and the second one is outside: its mask is not a constant, which
// `convert_to_cp_async` would not take.
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
// CHECK-LABEL: func.func @long_rows(
func.func @long_rows(%A: memref<1x512xf16>, %b: memref<512x8xf16, #space>, %C: memref<2x8xf32>)
    attributes {size_m = 1, size_n = 8, size_k = 512, operand_bits = 16, a_layout = "row", b_layout = "row"} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x512xf16, #space>
    linalg.fill ins(%zero : f16) outs(%a : memref<2x512xf16, #space>)
    %to_a = memref.subview %a[0, 0] [1, 512] [1, 1] : memref<2x512xf16, #space> to memref<1x512xf16, strided<[512, 1]>, #space>
    // CHECK-COUNT-2: vector.create_mask
    linalg.copy {operand_a} ins(%A : memref<1x512xf16>) outs(%to_a : memref<1x512xf16, strided<[512, 1]>, #space>)
    // CHECK: gpu.barrier
    linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : memref<2x512xf16, #space>, memref<512x8xf16, #space>)
                  outs(%C : memref<2x8xf32>)
    gpu.terminator
  }
  return
}
