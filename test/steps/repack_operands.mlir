// Operands whose rows are no multiple of 16 bytes are copied to workspaces with rows of whole lines; others stay.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step repack_operands --split-input-file --verify-diagnostics | FileCheck %s

// A has rows of 58 bytes; those of B take TMA as they are.
// CHECK-LABEL: func.func @odd_k(
// CHECK-SAME: %A: memref<64x29xf16>, %B: memref<29x32xf16>
// CHECK: [[W:%.+]] = memref.alloc() {workspace} : memref<64x64xf16>
// CHECK-NEXT: [[V:%.+]] = memref.subview [[W]][0, 0] [64, 29] [1, 1] : memref<64x64xf16> to memref<64x29xf16, strided<[64, 1]>>
// CHECK-NEXT: memref.copy %A, [[V]] {workspace} : memref<64x29xf16> to memref<64x29xf16, strided<[64, 1]>>
// CHECK-NEXT: [[A:%.+]] = bufferization.to_tensor [[V]] restrict : memref<64x29xf16, strided<[64, 1]>> to tensor<64x29xf16>
// CHECK-NEXT: [[B:%.+]] = bufferization.to_tensor %B restrict
// CHECK-NOT: memref.copy
// CHECK: linalg.matmul ins([[A]], [[B]] : tensor<64x29xf16>, tensor<29x32xf16>)
func.func @odd_k(%A: memref<64x29xf16>, %B: memref<29x32xf16>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x29xf16> to tensor<64x29xf16>
  %b = bufferization.to_tensor %B restrict : memref<29x32xf16> to tensor<29x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf32> to tensor<64x32xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x29xf16>, tensor<29x32xf16>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// C's rows are no matter of this step; rows of fp8 of 24 bytes are no multiple of 16 either.
// CHECK-LABEL: func.func @aligned(
// CHECK-NOT: memref.alloc
// CHECK: return
// CHECK-LABEL: func.func @bytes(
// CHECK: memref.alloc() {workspace} : memref<64x128xf8E4M3FN>
// CHECK: memref.alloc() {workspace} : memref<32x128xf8E4M3FN>
func.func @aligned(%A: memref<64x24xf16>, %B: memref<24x40xf16>, %C: memref<64x40xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x24xf16> to tensor<64x24xf16>
  %b = bufferization.to_tensor %B restrict : memref<24x40xf16> to tensor<24x40xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x40xf32> to tensor<64x40xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x24xf16>, tensor<24x40xf16>) outs(%c : tensor<64x40xf32>) -> tensor<64x40xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x40xf32>, memref<64x40xf32>) -> ()
  return
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @bytes(%A: memref<64x24xf8E4M3FN>, %B: memref<32x24xf8E4M3FN>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x24xf8E4M3FN> to tensor<64x24xf8E4M3FN>
  %b = bufferization.to_tensor %B restrict : memref<32x24xf8E4M3FN> to tensor<32x24xf8E4M3FN>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf32> to tensor<64x32xf32>
  %d = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<64x24xf8E4M3FN>, tensor<32x24xf8E4M3FN>)
      outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// One buffer that is A and B is copied once.
// CHECK-LABEL: func.func @one_buffer(
// CHECK-COUNT-1: memref.copy
// CHECK-NOT: memref.copy
// CHECK: linalg.matmul
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @one_buffer(%A: memref<64x29xf16>, %C: memref<64x64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x29xf16> to tensor<64x29xf16>
  %b = bufferization.to_tensor %A restrict : memref<64x29xf16> to tensor<64x29xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %d = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<64x29xf16>, tensor<64x29xf16>)
      outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}

// -----

func.func @on_tensors(%a: tensor<64x29xf16>, %b: tensor<29x32xf16>, %c: tensor<64x32xf32>) -> tensor<64x32xf32> {
  // expected-error@+1 {{tc.repack_operands: expected operands that are read from buffers}}
  %d = linalg.matmul ins(%a, %b : tensor<64x29xf16>, tensor<29x32xf16>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}

// -----

// expected-error@unknown {{tc.repack_operands: expected one matmul, or a pair, found 0}}
func.func @no_matmul() {
  return
}
