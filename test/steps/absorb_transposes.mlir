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

// -----

// Keys that are repeated for the heads of queries that share them: the loop of the copies is one of the queries alone.
// The queries are transposed too, and the axis of their heads is expanded as that of the keys is.
//
// CHECK-DAG: [[q:#.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d2, d5)>
// CHECK-DAG: [[k:#.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d1, d5)>
// CHECK-LABEL: func.func @repeated(
// CHECK: %[[x:.+]] = tensor.expand_shape %q {{\[\[}}0], [1], [2, 3], [4]] output_shape [2, 6, 2, 3, 8]
// CHECK: %[[c:.+]] = tensor.expand_shape %zeros {{\[\[}}0, 1, 2], [3], [4]] output_shape [2, 2, 3, 6, 7]
// CHECK: %[[r:.+]] = linalg.generic {indexing_maps = {{\[}}[[q]], [[k]], {{#.+}}]
// CHECK-SAME: ins(%[[x]], %k : tensor<2x6x2x3x8xf16>, tensor<2x7x2x8xf16>) outs(%[[c]]
// CHECK: tensor.collapse_shape %[[r]] {{\[\[}}0, 1, 2], [3], [4]]
func.func @repeated(%q: tensor<2x6x6x8xf16>, %k: tensor<2x7x2x8xf16>, %zeros: tensor<12x6x7xf32>) -> tensor<12x6x7xf32> {
  %0 = tensor.empty() : tensor<2x6x6x8xf16>
  %1 = tensor.empty() : tensor<2x2x8x7xf16>
  %2 = tensor.empty() : tensor<2x2x3x8x7xf16>
  %t = linalg.transpose ins(%q : tensor<2x6x6x8xf16>) outs(%0 : tensor<2x6x6x8xf16>) permutation = [0, 2, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x6x6x8xf16> into tensor<12x6x8xf16>
  %u = linalg.transpose ins(%k : tensor<2x7x2x8xf16>) outs(%1 : tensor<2x2x8x7xf16>) permutation = [0, 2, 3, 1]
  %v = linalg.broadcast ins(%u : tensor<2x2x8x7xf16>) outs(%2 : tensor<2x2x3x8x7xf16>) dimensions = [2]
  %b = tensor.collapse_shape %v [[0, 1, 2], [3], [4]] : tensor<2x2x3x8x7xf16> into tensor<12x8x7xf16>
  %r = linalg.batch_matmul ins(%a, %b : tensor<12x6x8xf16>, tensor<12x8x7xf16>) outs(%zeros : tensor<12x6x7xf32>)
    -> tensor<12x6x7xf32>
  return %r : tensor<12x6x7xf32>
}

// -----

// As torch-mlir writes it: an axis of one element, along which a `linalg.generic` repeats.
//
// CHECK-DAG: [[v:#.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d1, d4)>
// CHECK-LABEL: func.func @expanded(
// CHECK: %[[p:.+]] = tensor.expand_shape %p {{\[\[}}0, 1, 2], [3], [4]] output_shape [2, 2, 3, 6, 7]
// CHECK: linalg.generic {indexing_maps = {{\[}}{{#[^,]+}}, [[v]], {{.*}} ins(%[[p]], %v : {{.*}}tensor<2x7x2x8xf16>)
func.func @expanded(%p: tensor<12x6x7xf16>, %v: tensor<2x7x2x8xf16>, %zeros: tensor<12x6x8xf32>) -> tensor<12x6x8xf32> {
  %0 = tensor.empty() : tensor<2x2x7x8xf16>
  %1 = tensor.empty() : tensor<2x2x3x7x8xf16>
  %t = linalg.transpose ins(%v : tensor<2x7x2x8xf16>) outs(%0 : tensor<2x2x7x8xf16>) permutation = [0, 2, 1, 3]
  %u = tensor.expand_shape %t [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, 7, 8]
    : tensor<2x2x7x8xf16> into tensor<2x2x1x7x8xf16>
  %w = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, 0, d3, d4)>,
      affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%u : tensor<2x2x1x7x8xf16>) outs(%1 : tensor<2x2x3x7x8xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x2x3x7x8xf16>
  %b = tensor.collapse_shape %w [[0, 1, 2], [3], [4]] : tensor<2x2x3x7x8xf16> into tensor<12x7x8xf16>
  %r = linalg.batch_matmul ins(%p, %b : tensor<12x6x7xf16>, tensor<12x7x8xf16>) outs(%zeros : tensor<12x6x8xf32>)
    -> tensor<12x6x8xf32>
  return %r : tensor<12x6x8xf32>
}

// -----

// Copies of the rows of a matrix are no loop of the batch: they stay.
//
// CHECK-LABEL: func.func @rows(
// CHECK: linalg.broadcast
// CHECK: linalg.batch_matmul
func.func @rows(%p: tensor<3x6x8xf16>, %v: tensor<2x3x8xf16>, %zeros: tensor<3x6x8xf32>) -> tensor<3x6x8xf32> {
  %0 = tensor.empty() : tensor<3x2x8xf16>
  %1 = tensor.empty() : tensor<3x2x4x8xf16>
  %t = linalg.transpose ins(%v : tensor<2x3x8xf16>) outs(%0 : tensor<3x2x8xf16>) permutation = [1, 0, 2]
  %w = linalg.broadcast ins(%t : tensor<3x2x8xf16>) outs(%1 : tensor<3x2x4x8xf16>) dimensions = [2]
  %b = tensor.collapse_shape %w [[0], [1, 2], [3]] : tensor<3x2x4x8xf16> into tensor<3x8x8xf16>
  %r = linalg.batch_matmul ins(%p, %b : tensor<3x6x8xf16>, tensor<3x8x8xf16>) outs(%zeros : tensor<3x6x8xf32>)
    -> tensor<3x6x8xf32>
  return %r : tensor<3x6x8xf32>
}

// -----

// The axes of A end in one of one element, which those of B do not have: the transpose of A stays.
//
// CHECK-LABEL: func.func @unit_axis(
// CHECK: %[[a:.+]] = linalg.transpose ins(%q
// CHECK: %[[collapsed:.+]] = tensor.collapse_shape %[[a]]
// CHECK: %[[expanded:.+]] = tensor.expand_shape %[[collapsed]] {{.*}} output_shape [4, 2, 6, 8]
// CHECK: linalg.generic {{.*}} ins(%[[expanded]], %k :
func.func @unit_axis(%q: tensor<8x6x1x8xf16>, %k: tensor<4x7x2x8xf16>, %zeros: tensor<8x6x7xf32>) -> tensor<8x6x7xf32> {
  %0 = tensor.empty() : tensor<8x1x6x8xf16>
  %1 = tensor.empty() : tensor<4x2x8x7xf16>
  %t = linalg.transpose ins(%q : tensor<8x6x1x8xf16>) outs(%0 : tensor<8x1x6x8xf16>) permutation = [0, 2, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<8x1x6x8xf16> into tensor<8x6x8xf16>
  %u = linalg.transpose ins(%k : tensor<4x7x2x8xf16>) outs(%1 : tensor<4x2x8x7xf16>) permutation = [0, 2, 3, 1]
  %b = tensor.collapse_shape %u [[0, 1], [2], [3]] : tensor<4x2x8x7xf16> into tensor<8x8x7xf16>
  %r = linalg.batch_matmul ins(%a, %b : tensor<8x6x8xf16>, tensor<8x8x7xf16>) outs(%zeros : tensor<8x6x7xf32>)
    -> tensor<8x6x7xf32>
  return %r : tensor<8x6x7xf32>
}
