// The first of two matmuls moves behind the copies to the tile of the second B.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step gather_copies --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @pair(
// CHECK: scf.for
// CHECK-NOT: linalg.matmul
// CHECK: linalg.copy {operand_b} ins(%b : {{.*}}) outs([[B:%.+]] :
// CHECK-NEXT: [[B_TILE:%.+]] = bufferization.to_tensor [[B]]
// CHECK-NOT: linalg.matmul
// CHECK: linalg.copy {operand_b} ins(%g : {{.*}}) outs([[G:%.+]] :
// CHECK-NEXT: [[G_TILE:%.+]] = bufferization.to_tensor [[G]]
// CHECK-NEXT: [[P:%.+]] = linalg.matmul ins(%a, [[B_TILE]] :
// CHECK-NEXT: [[Q:%.+]] = linalg.matmul ins(%a, [[G_TILE]] :
// CHECK-NEXT: scf.yield [[P]], [[Q]]
#space = #gpu.address_space<workgroup>
func.func @pair(%a: tensor<16x32xf16>, %b: memref<32x16xf16>, %g: memref<32x16xf16>, %c: tensor<16x16xf32>)
    -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %k = %c0 to %c1 step %c1 iter_args(%x = %c, %y = %c) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
    %shared_b = memref.alloc() {operand_b} : memref<32x16xf16, #space>
    linalg.copy {operand_b} ins(%b : memref<32x16xf16>) outs(%shared_b : memref<32x16xf16, #space>)
    %b_tile = bufferization.to_tensor %shared_b restrict writable : memref<32x16xf16, #space> to tensor<32x16xf16>
    %p = linalg.matmul ins(%a, %b_tile : tensor<16x32xf16>, tensor<32x16xf16>) outs(%x : tensor<16x16xf32>) -> tensor<16x16xf32>
    %shared_g = memref.alloc() {operand_b} : memref<32x16xf16, #space>
    linalg.copy {operand_b} ins(%g : memref<32x16xf16>) outs(%shared_g : memref<32x16xf16, #space>)
    %g_tile = bufferization.to_tensor %shared_g restrict writable : memref<32x16xf16, #space> to tensor<32x16xf16>
    %q = linalg.matmul ins(%a, %g_tile : tensor<16x32xf16>, tensor<32x16xf16>) outs(%y : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.yield %p, %q : tensor<16x16xf32>, tensor<16x16xf32>
  }
  return %r#0, %r#1 : tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// expected-error@unknown {{tc.gather_products: expected two matmuls in one block, found 2}}
func.func @loop(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>, %n: index) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %p) -> tensor<16x16xf32> {
    %q = linalg.matmul ins(%a, %c : tensor<16x16xf32>, tensor<16x16xf32>) outs(%x : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.yield %q : tensor<16x16xf32>
  }
  return %r : tensor<16x16xf32>
}
