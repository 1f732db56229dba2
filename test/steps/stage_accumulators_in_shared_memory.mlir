// The product that an elementwise op consumes gets a buffer of the accumulators' type; without such an op there is none.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step stage_accumulators_in_shared_memory \
// RUN:   --set block_m=32 --set block_n=32 --set block_k=16 --set warp_m=16 --set warp_n=16 --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @consumed(
// CHECK: [[tile:%.+]] = memref.alloc() {operand_c} : memref<32x32xf32, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[tile]] :
// CHECK: [[start:%.+]] = bufferization.to_tensor [[tile]] restrict writable
// CHECK: [[sums:%.+]] = linalg.matmul {{.*}} outs([[start]] : tensor<32x32xf32>)
// CHECK: linalg.generic {{.*}} ins([[sums]] : tensor<32x32xf32>) outs(%C : tensor<32x32xf16>) attrs = {operand_c}
// CHECK: // -----
func.func @consumed(%A: tensor<32x16xf16>, %B: tensor<16x32xf16>, %C: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x16xf16>, tensor<16x32xf16>) outs(%z : tensor<32x32xf32>) -> tensor<32x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x32xf32>) outs(%C : tensor<32x32xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<32x32xf16>
  return %r : tensor<32x32xf16>
}

// -----

// CHECK-LABEL: func.func @product(
// CHECK-NOT: memref.alloc
// CHECK: linalg.matmul {{.*}} outs(%C : tensor<32x32xf32>)
func.func @product(%A: tensor<32x16xf16>, %B: tensor<16x32xf16>, %C: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %p = linalg.matmul ins(%A, %B : tensor<32x16xf16>, tensor<16x32xf16>) outs(%C : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %p : tensor<32x32xf32>
}

// -----

// The product starts from a buffer, not from zeros.
// expected-error@unknown {{incompatible payload operation name expected linalg.fill vs bufferization.to_tensor}}
func.func @continued(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>, %c: memref<32x32xf32>) -> tensor<32x32xf32> {
  %start = bufferization.to_tensor %c restrict : memref<32x32xf32> to tensor<32x32xf32>
  %sums = linalg.matmul ins(%a, %b : tensor<32x16xf16>, tensor<16x32xf16>) outs(%start : tensor<32x32xf32>)
    -> tensor<32x32xf32>
  %e = tensor.empty() : tensor<32x32xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.negf %x : f32
    linalg.yield %y : f32
  } -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}
