// The tiles of A and B are copied into shared memory, C is not.
//
// RUN: %stepladder-opt %s --pipeline wmma --step stage_in_shared_memory \
// RUN:   --set block_m=16 --set block_n=32 --set block_k=16 --set warp_m=16 --set warp_n=16 --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @matmul(
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<16x16xf16, #gpu.address_space<workgroup>>
// CHECK: [[from:%.+]] = bufferization.to_buffer %a read_only
// CHECK: linalg.copy {operand_a} ins([[from]] : {{.*}}) outs([[A]] :
// CHECK: [[a:%.+]] = bufferization.to_tensor [[A]] restrict writable
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<16x32xf16, #gpu.address_space<workgroup>>
// CHECK: [[from:%.+]] = bufferization.to_buffer %b read_only
// CHECK: linalg.copy {operand_b} ins([[from]] : {{.*}}) outs([[B]] :
// CHECK: [[b:%.+]] = bufferization.to_tensor [[B]] restrict writable
// CHECK: linalg.matmul ins([[a]], [[b]] : {{.*}}) outs(%c :
// CHECK-NOT: {{tensor.pad|memref.alloc|linalg.copy}}
// CHECK: // -----
func.func @matmul(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x32xf16>) outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %d : tensor<16x32xf32>
}

// -----

// In a loop over k, an iteration copies its own tiles.
// CHECK-LABEL: func.func @loop(
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK: memref.alloc() {operand_a} : memref<16x8xf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() {operand_b} : memref<8x32xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.matmul
// CHECK: scf.yield
func.func @loop(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %d = scf.for %k = %c0 to %c16 step %c8 iter_args(%sum = %c) -> (tensor<16x32xf32>) {
    %a_tile = tensor.extract_slice %a[0, %k] [16, 8] [1, 1] : tensor<16x16xf16> to tensor<16x8xf16>
    %b_tile = tensor.extract_slice %b[%k, 0] [8, 32] [1, 1] : tensor<16x32xf16> to tensor<8x32xf16>
    %next = linalg.matmul ins(%a_tile, %b_tile : tensor<16x8xf16>, tensor<8x32xf16>)
        outs(%sum : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.yield %next : tensor<16x32xf32>
  }
  return %d : tensor<16x32xf32>
}
