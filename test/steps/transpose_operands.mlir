// Operands of 8 and 32 bits that are not contiguous along k are copied to transposed workspaces; 16-bit ones stay.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step transpose_operands --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s

// CHECK-DAG: [[A:#.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: [[B:#.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: [[C:#.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @row_major(
// CHECK: [[T:%.+]] = memref.transpose %B (d0, d1) -> (d1, d0) : memref<96x40xi8> to memref<40x96xi8, strided<[1, 40]>>
// CHECK-NEXT: [[W:%.+]] = memref.alloc() {workspace} : memref<40x128xi8>
// CHECK-NEXT: [[V:%.+]] = memref.subview [[W]][0, 0] [40, 96] [1, 1]
// CHECK-NEXT: memref.copy [[T]], [[V]] {workspace}
// CHECK-NEXT: [[N:%.+]] = bufferization.to_tensor [[V]] restrict {{.*}} to tensor<40x96xi8>
// CHECK: linalg.matmul indexing_maps = {{\[}}[[A]], [[B]], [[C]]] ins(%{{.*}}, [[N]] : tensor<64x96xi8>, tensor<40x96xi8>)
func.func @row_major(%A: memref<64x96xi8>, %B: memref<96x40xi8>, %C: memref<64x40xi32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x96xi8> to tensor<64x96xi8>
  %b = bufferization.to_tensor %B restrict : memref<96x40xi8> to tensor<96x40xi8>
  %c = bufferization.to_tensor %C restrict writable : memref<64x40xi32> to tensor<64x40xi32>
  %d = linalg.matmul ins(%a, %b : tensor<64x96xi8>, tensor<96x40xi8>) outs(%c : tensor<64x40xi32>) -> tensor<64x40xi32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x40xi32>, memref<64x40xi32>) -> ()
  return
}

// -----

// A row of the workspace always has padding: its matrix is never all of it.
// CHECK-LABEL: func.func @whole_lines(
// CHECK: memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NOT: memref.alloc
// CHECK: return
// CHECK: // -----
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @whole_lines(%A: memref<32x64xf32>, %B: memref<40x32xf32>, %C: memref<64x40xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<32x64xf32> to tensor<32x64xf32>
  %b = bufferization.to_tensor %B restrict : memref<40x32xf32> to tensor<40x32xf32>
  %c = bufferization.to_tensor %C restrict writable : memref<64x40xf32> to tensor<64x40xf32>
  %d = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<32x64xf32>, tensor<40x32xf32>)
      outs(%c : tensor<64x40xf32>) -> tensor<64x40xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x40xf32>, memref<64x40xf32>) -> ()
  return
}

// -----

// A batch that reads one B: an op that has a map for it.
// CHECK-LABEL: func.func @broadcast(
// CHECK: memref.alloc() {workspace} : memref<40x128xf8E5M2>
// CHECK: linalg.contract indexing_maps = {{.*}} ins(%{{.*}}, %{{.*}} : tensor<3x64x96xf8E5M2>, tensor<40x96xf8E5M2>)
#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @broadcast(%A: memref<3x64x96xf8E5M2>, %B: memref<96x40xf8E5M2>, %C: memref<3x64x40xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<3x64x96xf8E5M2> to tensor<3x64x96xf8E5M2>
  %b = bufferization.to_tensor %B restrict : memref<96x40xf8E5M2> to tensor<96x40xf8E5M2>
  %c = bufferization.to_tensor %C restrict writable : memref<3x64x40xf32> to tensor<3x64x40xf32>
  %d = linalg.batch_matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<3x64x96xf8E5M2>, tensor<96x40xf8E5M2>)
      outs(%c : tensor<3x64x40xf32>) -> tensor<3x64x40xf32>
  bufferization.materialize_in_destination %d in restrict writable %C
      : (tensor<3x64x40xf32>, memref<3x64x40xf32>) -> ()
  return
}

// -----

// One buffer that is A and B is copied once, where both need it.
// CHECK-LABEL: func.func @one_buffer(
// CHECK-COUNT-1: memref.copy
// CHECK-NOT: memref.copy
// CHECK: linalg.matmul
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @one_buffer(%A: memref<96x64xi8>, %C: memref<64x64xi32>) {
  %a = bufferization.to_tensor %A restrict : memref<96x64xi8> to tensor<96x64xi8>
  %b = bufferization.to_tensor %A restrict : memref<96x64xi8> to tensor<96x64xi8>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xi32> to tensor<64x64xi32>
  %d = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<96x64xi8>, tensor<96x64xi8>)
      outs(%c : tensor<64x64xi32>) -> tensor<64x64xi32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x64xi32>, memref<64x64xi32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @halves(
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @halves(%A: memref<64x96xf16>, %B: memref<96x40xf16>, %C: memref<64x40xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x96xf16> to tensor<64x96xf16>
  %b = bufferization.to_tensor %B restrict : memref<96x40xf16> to tensor<96x40xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x40xf32> to tensor<64x40xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x40xf16>) outs(%c : tensor<64x40xf32>) -> tensor<64x40xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x40xf32>, memref<64x40xf32>) -> ()
  return
}

// -----

// Operands of a batch with several strides are read as they are; one that needs a copy is refused.
//
// CHECK-LABEL: func.func @several_strides(
// CHECK-NOT: memref.alloc
// CHECK: tensor.reshape
// CHECK: return
func.func @several_strides(%A: memref<2x3x8x16xf16, strided<[384, 16, 48, 1]>>, %B: memref<6x16x8xf16>,
                           %C: memref<6x8x8xf32>) {
  %extents = arith.constant dense<[6, 8, 16]> : tensor<3xi64>
  %all = bufferization.to_tensor %A restrict
    : memref<2x3x8x16xf16, strided<[384, 16, 48, 1]>> to tensor<2x3x8x16xf16>
  %a = tensor.reshape %all(%extents) : (tensor<2x3x8x16xf16>, tensor<3xi64>) -> tensor<6x8x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<6x16x8xf16> to tensor<6x16x8xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<6x8x8xf32> to tensor<6x8x8xf32>
  %d = linalg.batch_matmul ins(%a, %b : tensor<6x8x16xf16>, tensor<6x16x8xf16>) outs(%c : tensor<6x8x8xf32>)
    -> tensor<6x8x8xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<6x8x8xf32>, memref<6x8x8xf32>) -> ()
  return
}

// -----

func.func @several_strides_of_integers(%A: memref<6x8x16xi8>, %B: memref<2x3x16x16xi8, strided<[768, 16, 48, 1]>>,
                                       %C: memref<6x8x16xi32>) {
  %extents = arith.constant dense<[6, 16, 16]> : tensor<3xi64>
  %a = bufferization.to_tensor %A restrict : memref<6x8x16xi8> to tensor<6x8x16xi8>
  %all = bufferization.to_tensor %B restrict
    : memref<2x3x16x16xi8, strided<[768, 16, 48, 1]>> to tensor<2x3x16x16xi8>
  %b = tensor.reshape %all(%extents) : (tensor<2x3x16x16xi8>, tensor<3xi64>) -> tensor<6x16x16xi8>
  %c = bufferization.to_tensor %C restrict writable : memref<6x8x16xi32> to tensor<6x8x16xi32>
  // expected-error@+1 {{only operands with one stride between the matrices of a batch are copied before the matmul}}
  %d = linalg.batch_matmul ins(%a, %b : tensor<6x8x16xi8>, tensor<6x16x16xi8>) outs(%c : tensor<6x8x16xi32>)
    -> tensor<6x8x16xi32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<6x8x16xi32>, memref<6x8x16xi32>) -> ()
  return
}

// -----

func.func @on_tensors(%a: tensor<64x96xi8>, %b: tensor<96x32xi8>, %c: tensor<64x32xi32>) -> tensor<64x32xi32> {
  // expected-error@+1 {{tc.transpose_operands: expected operands that are read from buffers}}
  %d = linalg.matmul ins(%a, %b : tensor<64x96xi8>, tensor<96x32xi8>) outs(%c : tensor<64x32xi32>) -> tensor<64x32xi32>
  return %d : tensor<64x32xi32>
}

// -----

// expected-error@unknown {{tc.transpose_operands: expected one matmul, or a pair, found 0}}
func.func @no_matmul() {
  return
}
