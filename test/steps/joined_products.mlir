// Matmuls of neighbouring slices along k, each of which starts from the one before, or is added to it, are one matmul.
// Those of slices that do not follow each other, whose sums are rounded in between or read, stay.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --through decompose_ops --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @loop(
// CHECK: [[start:%.+]] = linalg.fill
// CHECK: linalg.matmul ins(%a, %b : tensor<4x24xf16>, tensor<24x6xf16>) outs([[start]] : tensor<4x6xf32>)
// CHECK-NOT: linalg.matmul
// CHECK: return
func.func @loop(%a: tensor<4x24xf16>, %b: tensor<24x6xf16>) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  %zeros = arith.constant dense<0.0> : tensor<4x6xf32>
  %r = scf.for %k = %c0 to %c24 step %c8 iter_args(%sums = %zeros) -> (tensor<4x6xf32>) {
    %x = tensor.extract_slice %a[0, %k] [4, 8] [1, 1] : tensor<4x24xf16> to tensor<4x8xf16>
    %y = tensor.extract_slice %b[%k, 0] [8, 6] [1, 1] : tensor<24x6xf16> to tensor<8x6xf16>
    %p = linalg.matmul ins(%x, %y : tensor<4x8xf16>, tensor<8x6xf16>) outs(%sums : tensor<4x6xf32>) -> tensor<4x6xf32>
    scf.yield %p : tensor<4x6xf32>
  }
  return %r : tensor<4x6xf32>
}

// -----

// B is stored as n x k, in one of several layers; what the sum begins from stays.
// CHECK-LABEL: func.func @added(
// CHECK: [[x:%.+]] = tensor.extract_slice %a[0, 8] [4, 16] [1, 1]
// CHECK: [[y:%.+]] = tensor.extract_slice %b[2, 0, 8] [1, 6, 16] [1, 1, 1] : tensor<3x6x24xf16> to tensor<6x16xf16>
// CHECK: [[p:%.+]] = linalg.matmul indexing_maps = {{.*}} ins([[x]], [[y]] :
// CHECK: linalg.generic {{.*}} ins(%c, [[p]] :
// CHECK-NOT: linalg.matmul
// CHECK: return
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @added(%a: tensor<4x24xf16>, %b: tensor<3x6x24xf16>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zeros = arith.constant dense<0.0> : tensor<4x6xf32>
  %a0 = tensor.extract_slice %a[0, 8] [4, 8] [1, 1] : tensor<4x24xf16> to tensor<4x8xf16>
  %a1 = tensor.extract_slice %a[0, 16] [4, 8] [1, 1] : tensor<4x24xf16> to tensor<4x8xf16>
  %b0 = tensor.extract_slice %b[2, 0, 8] [1, 6, 8] [1, 1, 1] : tensor<3x6x24xf16> to tensor<6x8xf16>
  %b1 = tensor.extract_slice %b[2, 0, 16] [1, 6, 8] [1, 1, 1] : tensor<3x6x24xf16> to tensor<6x8xf16>
  %p0 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a0, %b0 : tensor<4x8xf16>, tensor<6x8xf16>)
    outs(%zeros : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s0 = arith.addf %c, %p0 : tensor<4x6xf32>
  %p1 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a1, %b1 : tensor<4x8xf16>, tensor<6x8xf16>)
    outs(%zeros : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s1 = arith.addf %s0, %p1 : tensor<4x6xf32>
  return %s1 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-2: linalg.matmul {{.*}} tensor<4x6xf32>
// CHECK-COUNT-2: linalg.matmul {{.*}} tensor<4x6xf16>
// CHECK-COUNT-2: linalg.matmul {{.*}} tensor<4x6xf32>
func.func @apart(%a: tensor<4x24xf16>, %b: tensor<24x6xf16>)
    -> (tensor<4x6xf32>, tensor<4x6xf16>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<4x6xf32>
  %narrow_zeros = arith.constant dense<0.0> : tensor<4x6xf16>
  %a0 = tensor.extract_slice %a[0, 0] [4, 8] [1, 1] : tensor<4x24xf16> to tensor<4x8xf16>
  %a1 = tensor.extract_slice %a[0, 8] [4, 8] [1, 1] : tensor<4x24xf16> to tensor<4x8xf16>
  %a2 = tensor.extract_slice %a[0, 16] [4, 8] [1, 1] : tensor<4x24xf16> to tensor<4x8xf16>
  %b0 = tensor.extract_slice %b[0, 0] [8, 6] [1, 1] : tensor<24x6xf16> to tensor<8x6xf16>
  %b1 = tensor.extract_slice %b[8, 0] [8, 6] [1, 1] : tensor<24x6xf16> to tensor<8x6xf16>
  %p0 = linalg.matmul ins(%a0, %b0 : tensor<4x8xf16>, tensor<8x6xf16>) outs(%zeros : tensor<4x6xf32>)
    -> tensor<4x6xf32>
  %p1 = linalg.matmul ins(%a2, %b1 : tensor<4x8xf16>, tensor<8x6xf16>) outs(%p0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %q0 = linalg.matmul ins(%a0, %b0 : tensor<4x8xf16>, tensor<8x6xf16>) outs(%narrow_zeros : tensor<4x6xf16>)
    -> tensor<4x6xf16>
  %q1 = linalg.matmul ins(%a1, %b1 : tensor<4x8xf16>, tensor<8x6xf16>) outs(%q0 : tensor<4x6xf16>) -> tensor<4x6xf16>
  %r0 = linalg.matmul ins(%a1, %b1 : tensor<4x8xf16>, tensor<8x6xf16>) outs(%zeros : tensor<4x6xf32>)
    -> tensor<4x6xf32>
  %r1 = linalg.matmul ins(%a0, %b0 : tensor<4x8xf16>, tensor<8x6xf16>) outs(%r0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %p1, %q1, %r0, %r1 : tensor<4x6xf32>, tensor<4x6xf16>, tensor<4x6xf32>, tensor<4x6xf32>
}
