// Contractions of transposed tensors read the tensors: their axes become loops.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step absorb_transposes \
// RUN:   --set in_place=true --split-input-file | FileCheck %s

// The batch of B is not collapsed from axes: B and the result are expanded.
//
// CHECK-DAG: [[q:#.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG: [[k:#.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: [[s:#.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func @scores(
// CHECK-DAG: %[[b:.+]] = tensor.expand_shape %k {{\[\[}}0, 1], [2], [3]] output_shape [2, 4, 8, 6]
// CHECK-DAG: %[[c:.+]] = tensor.expand_shape %zeros {{\[\[}}0, 1], [2], [3]] output_shape [2, 4, 6, 6]
// CHECK: %[[r:.+]] = linalg.generic {indexing_maps = {{\[}}[[q]], [[k]], [[s]]]
// CHECK-SAME: ins(%q, %[[b]] : tensor<2x6x4x8xf16>, tensor<2x4x8x6xf16>) outs(%[[c]]
// CHECK: tensor.collapse_shape %[[r]] {{\[\[}}0, 1], [2], [3]]
func.func @scores(%q: tensor<2x6x4x8xf16>, %k: tensor<8x8x6xf16>, %zeros: tensor<8x6x6xf32>) -> tensor<8x6x6xf32> {
  %0 = tensor.empty() : tensor<2x4x6x8xf16>
  %t = linalg.transpose ins(%q : tensor<2x6x4x8xf16>) outs(%0 : tensor<2x4x6x8xf16>) permutation = [0, 2, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x4x6x8xf16> into tensor<8x6x8xf16>
  %r = linalg.batch_matmul ins(%a, %k : tensor<8x6x8xf16>, tensor<8x8x6xf16>) outs(%zeros : tensor<8x6x6xf32>)
    -> tensor<8x6x6xf32>
  return %r : tensor<8x6x6xf32>
}

// -----

// Both operands, without axes that are collapsed.
//
// CHECK-DAG: [[q:#.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>
// CHECK-DAG: [[k:#.+]] = affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>
// CHECK-LABEL: func.func @both(
// CHECK: linalg.generic {indexing_maps = {{\[}}[[q]], [[k]],
// CHECK-SAME: ins(%q, %k :
// CHECK-NOT: tensor.collapse_shape
func.func @both(%q: tensor<6x4x8xf16>, %k: tensor<7x4x8xf16>, %zeros: tensor<4x6x7xf32>) -> tensor<4x6x7xf32> {
  %0 = tensor.empty() : tensor<4x6x8xf16>
  %1 = tensor.empty() : tensor<4x8x7xf16>
  %a = linalg.transpose ins(%q : tensor<6x4x8xf16>) outs(%0 : tensor<4x6x8xf16>) permutation = [1, 0, 2]
  %b = linalg.transpose ins(%k : tensor<7x4x8xf16>) outs(%1 : tensor<4x8x7xf16>) permutation = [1, 2, 0]
  %r = linalg.batch_matmul ins(%a, %b : tensor<4x6x8xf16>, tensor<4x8x7xf16>) outs(%zeros : tensor<4x6x7xf32>)
    -> tensor<4x6x7xf32>
  return %r : tensor<4x6x7xf32>
}

// -----

// The batch of B is made of other axes than that of A: the transpose of B stays.
//
// CHECK-LABEL: func.func @other_axes(
// CHECK: %[[b:.+]] = linalg.transpose ins(%k
// CHECK: %[[expanded:.+]] = tensor.collapse_shape %[[b]]
// CHECK: tensor.expand_shape %[[expanded]] {{.*}} output_shape [2, 4, 8, 7]
// CHECK: linalg.generic {{.*}} ins(%q,
func.func @other_axes(%q: tensor<2x6x4x8xf16>, %k: tensor<4x7x2x8xf16>, %zeros: tensor<8x6x7xf32>) -> tensor<8x6x7xf32> {
  %0 = tensor.empty() : tensor<2x4x6x8xf16>
  %1 = tensor.empty() : tensor<4x2x8x7xf16>
  %t = linalg.transpose ins(%q : tensor<2x6x4x8xf16>) outs(%0 : tensor<2x4x6x8xf16>) permutation = [0, 2, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x4x6x8xf16> into tensor<8x6x8xf16>
  %u = linalg.transpose ins(%k : tensor<4x7x2x8xf16>) outs(%1 : tensor<4x2x8x7xf16>) permutation = [0, 2, 3, 1]
  %b = tensor.collapse_shape %u [[0, 1], [2], [3]] : tensor<4x2x8x7xf16> into tensor<8x8x7xf16>
  %r = linalg.batch_matmul ins(%a, %b : tensor<8x6x8xf16>, tensor<8x8x7xf16>) outs(%zeros : tensor<8x6x7xf32>)
    -> tensor<8x6x7xf32>
  return %r : tensor<8x6x7xf32>
}

// -----

// A layout that the kernel of the matmul reads stays.
//
// CHECK-LABEL: func.func @weights(
// CHECK: linalg.transpose
// CHECK: linalg.matmul
func.func @weights(%x: tensor<6x8xf16>, %w: tensor<7x8xf16>, %zeros: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %0 = tensor.empty() : tensor<8x7xf16>
  %b = linalg.transpose ins(%w : tensor<7x8xf16>) outs(%0 : tensor<8x7xf16>) permutation = [1, 0]
  %r = linalg.matmul ins(%x, %b : tensor<6x8xf16>, tensor<8x7xf16>) outs(%zeros : tensor<6x7xf32>) -> tensor<6x7xf32>
  return %r : tensor<6x7xf32>
}
