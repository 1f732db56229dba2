// A product that accumulates in C starts from zeros where tiles have edges, and an op behind it adds C. Its sizes are
// noted.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step prepare_edges --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @accumulates(
// CHECK-SAME: a_layout = "row", b_layout = "row", has_consumer = 0 : i64, operand_bits = 16 : i64, operand_type = "f16", size_k = 40 : i64, size_m = 100 : i64, size_n = 72 : i64
// CHECK: [[zeros:%.+]] = linalg.fill
// CHECK: [[product:%.+]] = linalg.matmul {{.*}} outs([[zeros]] : tensor<100x72xf32>)
// CHECK: [[sum:%.+]] = linalg.generic {{.*}} ins([[product]] : {{.*}}) outs(%{{.*}} : tensor<100x72xf32>)
// CHECK: arith.addf
// CHECK: bufferization.materialize_in_destination [[sum]] in restrict writable %C
func.func @accumulates(%A: memref<100x40xf16>, %B: memref<40x72xf16>, %C: memref<100x72xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<100x40xf16> to tensor<100x40xf16>
  %b = bufferization.to_tensor %B restrict : memref<40x72xf16> to tensor<40x72xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<100x72xf32> to tensor<100x72xf32>
  %product = linalg.matmul ins(%a, %b : tensor<100x40xf16>, tensor<40x72xf16>) outs(%c : tensor<100x72xf32>)
    -> tensor<100x72xf32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<100x72xf32>, memref<100x72xf32>) -> ()
  return
}

// -----

// A batch of i32 sums; A is column-major.
// CHECK-LABEL: func.func @batch(
// CHECK-SAME: a_layout = "column", b_layout = "row", has_consumer = 0 : i64, operand_bits = 8 : i64, operand_type = "i8", size_k = 40 : i64, size_m = 33 : i64, size_n = 7 : i64
// CHECK: linalg.batch_matmul
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]
// CHECK: arith.addi
#a = affine_map<(b, m, n, k) -> (b, k, m)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @batch(%A: memref<2x40x33xi8>, %B: memref<2x40x7xi8>, %C: memref<2x33x7xi32>) {
  %a = bufferization.to_tensor %A restrict : memref<2x40x33xi8> to tensor<2x40x33xi8>
  %b = bufferization.to_tensor %B restrict : memref<2x40x7xi8> to tensor<2x40x7xi8>
  %c = bufferization.to_tensor %C restrict writable : memref<2x33x7xi32> to tensor<2x33x7xi32>
  %product = linalg.batch_matmul indexing_maps = [#a, #b, #c]
    ins(%a, %b : tensor<2x40x33xi8>, tensor<2x40x7xi8>) outs(%c : tensor<2x33x7xi32>) -> tensor<2x33x7xi32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<2x33x7xi32>, memref<2x33x7xi32>) -> ()
  return
}

// -----

// A product that starts from zeros stays as it is.
// CHECK-LABEL: func.func @from_zeros(
// CHECK-SAME: size_m = 17
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @from_zeros(%A: memref<17x16xf16>, %B: memref<16x16xf16>, %C: memref<17x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<17x16xf16> to tensor<17x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x16xf16> to tensor<16x16xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<17x16xf32> to tensor<17x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<17x16xf32>) -> tensor<17x16xf32>
  %product = linalg.matmul ins(%a, %b : tensor<17x16xf16>, tensor<16x16xf16>) outs(%zeros : tensor<17x16xf32>)
    -> tensor<17x16xf32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<17x16xf32>, memref<17x16xf32>) -> ()
  return
}

// -----

// expected-error@below {{tc.separate_accumulation: expected one matmul, or the two of a pair, found 3}}
module {
  func.func @three(%a: tensor<17x17xf16>, %c: tensor<17x17xf16>) -> tensor<17x17xf16> {
    %first = linalg.matmul ins(%a, %a : tensor<17x17xf16>, tensor<17x17xf16>) outs(%c : tensor<17x17xf16>)
      -> tensor<17x17xf16>
    %second = linalg.matmul ins(%a, %first : tensor<17x17xf16>, tensor<17x17xf16>) outs(%c : tensor<17x17xf16>)
      -> tensor<17x17xf16>
    %third = linalg.matmul ins(%a, %second : tensor<17x17xf16>, tensor<17x17xf16>) outs(%c : tensor<17x17xf16>)
      -> tensor<17x17xf16>
    return %third : tensor<17x17xf16>
  }
}
