// Elementwise ops that make the operand which wgmma takes from registers become a function on buffers, and a call.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step outline_producer --set producers=registers --set swap_operands=true \
// RUN:   --set block_k=16 --split-input-file --verify-diagnostics | FileCheck %s

// Weights of i8 and their scales make B; A is read as it is.
// CHECK-LABEL: func.func private @producer(
// CHECK-SAME: [[q:%.+]]: memref<32x16xi8>, [[s:%.+]]: memref<32xf16>, [[w:%.+]]: memref<32x16xf16>) attributes {producer}
// CHECK: linalg.generic
// CHECK-SAME: ins([[q]], [[s]] : memref<32x16xi8>, memref<32xf16>)
// CHECK: [[x:%.+]] = arith.sitofp
// CHECK-NEXT: arith.mulf [[x]],
// CHECK-LABEL: func.func @weights(
// CHECK-SAME: %A: memref<8x16xf16>, %Q: memref<32x16xi8>, %S: memref<32xf16>
// CHECK: [[B:%.+]] = memref.alloc() {whole, workspace} : memref<32x16xf16>
// CHECK-NEXT: call @producer(%Q, %S, [[B]]) {producer}
// CHECK: [[b:%.+]] = bufferization.to_tensor [[B]]
// CHECK-NOT: linalg.generic
// CHECK: linalg.matmul {{.*}}ins(%{{.*}}, [[b]] :
// CHECK: // -----
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @weights(%A: memref<8x16xf16>, %Q: memref<32x16xi8>, %S: memref<32xf16>, %C: memref<8x32xf32>) {
  %alloc = memref.alloc() {whole, workspace} : memref<32x16xf16>
  %q = bufferization.to_tensor %Q restrict : memref<32x16xi8> to tensor<32x16xi8>
  %s = bufferization.to_tensor %S restrict : memref<32xf16> to tensor<32xf16>
  %e = tensor.empty() : tensor<32x16xf16>
  %w = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<32x16xi8>, tensor<32xf16>) outs(%e : tensor<32x16xf16>) {
  ^bb0(%in: i8, %scale: f16, %out: f16):
    %x = arith.sitofp %in : i8 to f16
    %y = arith.mulf %x, %scale : f16
    linalg.yield %y : f16
  } -> tensor<32x16xf16>
  bufferization.materialize_in_destination %w in restrict writable %alloc : (tensor<32x16xf16>, memref<32x16xf16>) -> ()
  %a = bufferization.to_tensor %A restrict : memref<8x16xf16> to tensor<8x16xf16>
  %b = bufferization.to_tensor %alloc restrict : memref<32x16xf16> to tensor<32x16xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<8x32xf32> to tensor<8x32xf32>
  %d = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<8x16xf16>, tensor<32x16xf16>) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<8x32xf32>, memref<8x32xf32>) -> ()
  return
}

// -----

func.func @as_it_is(%A: memref<8x16xf16>, %B: memref<16x32xf16>, %C: memref<8x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<8x16xf16> to tensor<8x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<8x32xf32> to tensor<8x32xf32>
  // expected-error @below {{expected elementwise ops that compute B, the register operand}}
  %d = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf16>) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<8x32xf32>, memref<8x32xf32>) -> ()
  return
}

// -----

#square = affine_map<(i, j) -> (i, j)>
func.func @both(%A: memref<16x16xf16>, %C: memref<16x16xf32>) {
  %alloc = memref.alloc() {workspace} : memref<16x16xf16>
  %a = bufferization.to_tensor %A restrict : memref<16x16xf16> to tensor<16x16xf16>
  %e = tensor.empty() : tensor<16x16xf16>
  %w = linalg.generic {indexing_maps = [#square, #square], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<16x16xf16>) outs(%e : tensor<16x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    %y = arith.addf %in, %in : f16
    linalg.yield %y : f16
  } -> tensor<16x16xf16>
  bufferization.materialize_in_destination %w in restrict writable %alloc : (tensor<16x16xf16>, memref<16x16xf16>) -> ()
  %b = bufferization.to_tensor %alloc restrict : memref<16x16xf16> to tensor<16x16xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<16x16xf32> to tensor<16x16xf32>
  // expected-error @below {{elementwise ops compute one operand that is A and B; a register operand is one of them}}
  %d = linalg.matmul ins(%b, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
  return
}
