// Operands whose dimensions of m, n, k or the batch do not lie next to each other are transposed: of the orders that
// suit, the one that copies the fewest elements. The innermost dimension of 16-bit operands stays the innermost where
// it can. What the front accepts stays.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step permute_contractions \
// RUN:   --split-input-file | FileCheck %s
// RUN: sed -n '/^.. Heads behind/,/^.. ---/p' %s | %stepladder-opt - --pipeline %transforms/functions/functions.mlir \
// RUN:   --step permute_contractions --set columns=false | FileCheck %s --check-prefix=WHOLE
// RUN: sed -n '/^.. In place/,$p' %s | %stepladder-opt - --pipeline %transforms/functions/functions.mlir \
// RUN:   --step permute_contractions --set in_place=true --split-input-file | FileCheck %s --check-prefix=IN-PLACE
// RUN: sed -n '/^.. The heads are/,/^.. ---/p' %s | sed '$d' \
// RUN:   | %stepladder-opt - --pipeline %transforms/functions/functions.mlir --step permute_contractions \
// RUN:     --set strided=true --split-input-file | FileCheck %s --check-prefix=STRIDED

// The heads are a batch: they come before the sequence. A kernel that reads batches of several strides copies nothing.
//
// STRIDED-LABEL: func.func @scores(
// STRIDED-NOT: linalg.transpose
// STRIDED: linalg.contract {{.*}} {strided} ins(%q, %k : 
//
// CHECK-DAG: [[q:#.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: [[k:#.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
// CHECK-DAG: [[s:#.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func @scores(
// CHECK: %[[qt:.+]] = linalg.transpose ins(%q : {{.*}}) outs({{.*}} : tensor<2x4x6x8xf16>) permutation = [0, 2, 1, 3]
// CHECK: %[[kt:.+]] = linalg.transpose ins(%k : {{.*}}) outs({{.*}} : tensor<2x4x6x8xf16>) permutation = [0, 2, 1, 3]
// CHECK: linalg.generic {indexing_maps = {{\[}}[[q]], [[k]], [[s]]]
// CHECK-SAME: ins(%[[qt]], %[[kt]]
// CHECK-NOT: linalg.transpose
#q = affine_map<(b, h, s, t, d) -> (b, s, h, d)>
#k = affine_map<(b, h, s, t, d) -> (b, t, h, d)>
#s = affine_map<(b, h, s, t, d) -> (b, h, s, t)>
func.func @scores(%q: tensor<2x6x4x8xf16>, %k: tensor<2x6x4x8xf16>, %zeros: tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32> {
  %r = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<2x6x4x8xf16>, tensor<2x6x4x8xf16>)
    outs(%zeros : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  return %r : tensor<2x4x6x6xf32>
}

// -----

// The heads are a batch with the transpose of the result, which JAX writes: queries that share keys.
//
// STRIDED-LABEL: func.func @shared_keys(
// STRIDED-NOT: linalg.transpose
// STRIDED: linalg.generic {{.*}} ins(%k, %q : {{.*}} attrs = {strided}
// STRIDED: -> tensor<2x2x2x16x16xf32>
// STRIDED-NOT: linalg.transpose
// STRIDED: return
// CHECK-LABEL: func.func @shared_keys(
// CHECK-COUNT-3: linalg.transpose
#keys = affine_map<(b, k, s, t, g, d) -> (b, s, k, d)>
#queries = affine_map<(b, k, s, t, g, d) -> (b, t, k, g, d)>
#scores = affine_map<(b, k, s, t, g, d) -> (b, k, s, t, g)>
func.func @shared_keys(%k: tensor<2x16x2x8xf16>, %q: tensor<2x16x2x2x8xf16>) -> tensor<2x2x2x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x16x16x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x16x16x2xf32>) -> tensor<2x2x16x16x2xf32>
  %r = linalg.contract indexing_maps = [#keys, #queries, #scores]
    ins(%k, %q : tensor<2x16x2x8xf16>, tensor<2x16x2x2x8xf16>) outs(%zeros : tensor<2x2x16x16x2xf32>)
    -> tensor<2x2x16x16x2xf32>
  %o = tensor.empty() : tensor<2x2x2x16x16xf32>
  %t = linalg.transpose ins(%r : tensor<2x2x16x16x2xf32>) outs(%o : tensor<2x2x2x16x16xf32>)
    permutation = [0, 1, 4, 3, 2]
  return %t : tensor<2x2x2x16x16xf32>
}

// -----

// The smaller of two operands, whose orders of k differ.
//
// CHECK-LABEL: func.func @weights(
// CHECK: linalg.transpose ins(%w : {{.*}}) outs({{.*}} : tensor<5x2x3xf16>) permutation = [0, 2, 1]
// CHECK-NOT: linalg.transpose
#x = affine_map<(m, n, h, d) -> (m, h, d)>
#w = affine_map<(m, n, h, d) -> (n, d, h)>
#y = affine_map<(m, n, h, d) -> (m, n)>
func.func @weights(%x: tensor<7x2x3xf16>, %w: tensor<5x3x2xf16>, %zeros: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %r = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<7x2x3xf16>, tensor<5x3x2xf16>)
    outs(%zeros : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %r : tensor<7x5xf32>
}

// -----

// The rows of w stay whole, and are copied by vectors.
//
// CHECK-LABEL: func.func @rows_stay(
// CHECK: linalg.transpose ins(%w : {{.*}}) outs({{.*}} : tensor<2x3x16xf16>) permutation = [1, 0, 2]
// CHECK-NOT: linalg.transpose
#x = affine_map<(m, n, h, d) -> (m, h, d)>
#w = affine_map<(m, n, h, d) -> (d, h, n)>
#y = affine_map<(m, n, h, d) -> (m, n)>
func.func @rows_stay(%x: tensor<32x2x3xf16>, %w: tensor<3x2x16xf16>, %zeros: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %r = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<32x2x3xf16>, tensor<3x2x16xf16>)
    outs(%zeros : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}

// -----

// Tensor cores multiply f32 along k.
//
// CHECK-LABEL: func.func @wide_elements(
// CHECK: linalg.transpose ins(%w : {{.*}}) outs({{.*}} : tensor<16x2x3xf32>) permutation = [2, 1, 0]
// CHECK-NOT: linalg.transpose
#x = affine_map<(m, n, h, d) -> (m, h, d)>
#w = affine_map<(m, n, h, d) -> (d, h, n)>
#y = affine_map<(m, n, h, d) -> (m, n)>
func.func @wide_elements(%x: tensor<32x2x3xf32>, %w: tensor<3x2x16xf32>, %zeros: tensor<32x16xf32>)
    -> tensor<32x16xf32> {
  %r = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<32x2x3xf32>, tensor<3x2x16xf32>)
    outs(%zeros : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}

// -----

// The result: its columns lie between its rows.
//
// CHECK-LABEL: func.func @result(
// CHECK: [[start:%.+]] = linalg.fill {{.*}} -> tensor<2x3x5x4xf32>
// CHECK: [[r:%.+]] = linalg.generic {{.*}} outs([[start]] : tensor<2x3x5x4xf32>)
// CHECK: linalg.transpose ins([[r]] : {{.*}}) outs({{.*}} : tensor<2x5x3x4xf32>) permutation = [0, 2, 1, 3]
// CHECK-NOT: linalg.transpose
#a = affine_map<(m, p, n, o, k) -> (m, p, k)>
#b = affine_map<(m, p, n, o, k) -> (n, o, k)>
#c = affine_map<(m, p, n, o, k) -> (m, n, p, o)>
func.func @result(%a: tensor<2x3x32xf16>, %b: tensor<5x4x32xf16>) -> tensor<2x5x3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<2x5x3x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x5x3x4xf32>) -> tensor<2x5x3x4xf32>
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<2x3x32xf16>, tensor<5x4x32xf16>)
    outs(%zeros : tensor<2x5x3x4xf32>) -> tensor<2x5x3x4xf32>
  return %r : tensor<2x5x3x4xf32>
}

// -----

// Another order that no kernel reads: the transpose stays apart, and one fill is left.
//
// CHECK-LABEL: func.func @stays_apart(
// CHECK-COUNT-1: linalg.fill
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic
// CHECK: linalg.transpose
// CHECK: linalg.transpose
#a = affine_map<(b, m, n, k) -> (m, b, k)>
#b = affine_map<(b, m, n, k) -> (k, b, n)>
#c = affine_map<(b, m, n, k) -> (m, b, n)>
func.func @stays_apart(%a: tensor<16x8x24xf32>, %b: tensor<24x8x32xf32>) -> tensor<32x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x8x32xf32>) -> tensor<16x8x32xf32>
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<16x8x24xf32>, tensor<24x8x32xf32>)
    outs(%zeros : tensor<16x8x32xf32>) -> tensor<16x8x32xf32>
  %other = tensor.empty() : tensor<32x8x16xf32>
  %t = linalg.transpose ins(%r : tensor<16x8x32xf32>) outs(%other : tensor<32x8x16xf32>) permutation = [2, 1, 0]
  return %t : tensor<32x8x16xf32>
}

// -----

// CHECK-LABEL: func.func @accepted(
// CHECK-NOT: linalg.transpose
// CHECK: linalg.contract
#m = affine_map<(i, j, k) -> (k, i)>
#n = affine_map<(i, j, k) -> (j, k)>
#p = affine_map<(i, j, k) -> (i, j)>
func.func @accepted(%a: tensor<8x4xf16>, %b: tensor<6x8xf16>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = linalg.contract indexing_maps = [#m, #n, #p] ins(%a, %b : tensor<8x4xf16>, tensor<6x8xf16>)
    outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// Sums that start from a constant start from it in their new order. Rows of 28 bytes are none that a matmul writes
// with a pitch.
//
// CHECK-LABEL: func.func @heads_behind(
// CHECK: %[[zeros:.+]] = arith.constant dense<0.000000e+00> : tensor<2x6x7xf32>
// CHECK: %[[sums:.+]] = linalg.generic {{.*}} outs(%[[zeros]] : tensor<2x6x7xf32>)
// CHECK: linalg.transpose ins(%[[sums]] : {{.*}}) outs({{.*}} : tensor<6x2x7xf32>) permutation = [1, 0, 2]
#w = affine_map<(h, s, d, t) -> (h, s, t)>
#v = affine_map<(h, s, d, t) -> (h, t, d)>
#o = affine_map<(h, s, d, t) -> (s, h, d)>
func.func @heads_behind(%w: tensor<2x6x4xf16>, %v: tensor<2x4x7xf16>) -> tensor<6x2x7xf32> {
  %zeros = arith.constant dense<0.0> : tensor<6x2x7xf32>
  %r = linalg.contract indexing_maps = [#w, #v, #o] ins(%w, %v : tensor<2x6x4xf16>, tensor<2x4x7xf16>)
    outs(%zeros : tensor<6x2x7xf32>) -> tensor<6x2x7xf32>
  return %r : tensor<6x2x7xf32>
}

// -----

// Heads behind rows of whole vectors stay, unless the pipelines write whole buffers.
//
// CHECK-LABEL: func.func @heads_in_place(
// CHECK-NOT: linalg.transpose
// CHECK: return
// WHOLE-LABEL: func.func @heads_in_place(
// WHOLE: linalg.transpose ins(%{{.+}} : {{.*}}) outs({{.*}} : tensor<6x2x8xf32>) permutation = [1, 0, 2]
#w = affine_map<(h, s, d, t) -> (h, s, t)>
#v = affine_map<(h, s, d, t) -> (h, t, d)>
#o = affine_map<(h, s, d, t) -> (s, h, d)>
func.func @heads_in_place(%w: tensor<2x6x4xf16>, %v: tensor<2x4x8xf16>) -> tensor<6x2x8xf32> {
  %zeros = arith.constant dense<0.0> : tensor<6x2x8xf32>
  %r = linalg.contract indexing_maps = [#w, #v, #o] ins(%w, %v : tensor<2x6x4xf16>, tensor<2x4x8xf16>)
    outs(%zeros : tensor<6x2x8xf32>) -> tensor<6x2x8xf32>
  return %r : tensor<6x2x8xf32>
}

// -----

// The window of a convolution of 1 x 1 has loops of one iteration, which the weight alone has; the rest, of few
// columns, is permuted.
//
// CHECK-LABEL: func.func @window_of_one(
// CHECK: %[[W:.+]] = tensor.collapse_shape %w {{\[\[}}0, 1, 2], [3{{\]\]}} : tensor<24x1x1x16xf16> into tensor<24x16xf16>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%{{.+}}, %[[W]] :
#x = affine_map<(b, p, n, i, j, c) -> (b, c, p)>
#w = affine_map<(b, p, n, i, j, c) -> (n, i, j, c)>
#y = affine_map<(b, p, n, i, j, c) -> (b, p, n)>
func.func @window_of_one(%x: tensor<2x16x12xf16>, %w: tensor<24x1x1x16xf16>, %zeros: tensor<2x12x24xf32>)
    -> tensor<2x12x24xf32> {
  %r = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x16x12xf16>, tensor<24x1x1x16xf16>) outs(%zeros : tensor<2x12x24xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %wide = arith.extf %a : f16 to f32
    %other = arith.extf %b : f16 to f32
    %product = arith.mulf %wide, %other : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x12x24xf32>
  return %r : tensor<2x12x24xf32>
}

// -----

// A loop of one iteration that the result alone has, as where a window has a single place along an axis, is dropped.
//
// CHECK-LABEL: func.func @single_place(
// CHECK: %[[r:.+]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x4x8xf32>)
// CHECK: %[[t:.+]] = linalg.transpose ins(%[[r]] : {{.*}}) outs({{.*}} : tensor<4x2x8xf32>)
// CHECK: %[[e:.+]] = tensor.expand_shape %[[t]] {{\[\[}}0], [1, 2], [3]] {{.*}} into tensor<4x2x1x8xf32>
// CHECK: return %[[e]]
#windows = affine_map<(m, b, one, n, k) -> (k, b, m)>
#filters = affine_map<(m, b, one, n, k) -> (b, k, n)>
#places = affine_map<(m, b, one, n, k) -> (m, b, one, n)>
func.func @single_place(%x: tensor<6x2x4xf32>, %w: tensor<2x6x8xf32>) -> tensor<4x2x1x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2x1x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x1x8xf32>) -> tensor<4x2x1x8xf32>
  %r = linalg.contract indexing_maps = [#windows, #filters, #places]
    ins(%x, %w : tensor<6x2x4xf32>, tensor<2x6x8xf32>) outs(%z : tensor<4x2x1x8xf32>) -> tensor<4x2x1x8xf32>
  return %r : tensor<4x2x1x8xf32>
}

// -----

// In place: the kernel of the matmul reads w, whose rows stay whole. The smaller x would be transposed by a kernel.
//
// IN-PLACE-LABEL: func.func @larger_operand(
// IN-PLACE: linalg.transpose ins(%w : {{.*}}) outs({{.*}} : tensor<2x32x64xf16>) permutation = [1, 0, 2] {prepared}
// IN-PLACE-NOT: linalg.transpose
// CHECK-LABEL: func.func @larger_operand(
// CHECK: linalg.transpose ins(%x : {{.*}}) outs({{.*}} : tensor<8x32x2xf16>) permutation = [0, 2, 1]{{ *$}}
// CHECK: linalg.generic
// CHECK: // -----
#x = affine_map<(m, n, h, d) -> (m, h, d)>
#w = affine_map<(m, n, h, d) -> (d, h, n)>
#y = affine_map<(m, n, h, d) -> (m, n)>
func.func @larger_operand(%x: tensor<8x2x32xf16>, %w: tensor<32x2x64xf16>, %zeros: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %r = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<8x2x32xf16>, tensor<32x2x64xf16>)
    outs(%zeros : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// Boxes of 64 rows are no whole numbers of 24, and rows of 12 elements no multiples of 16 bytes.
//
// IN-PLACE-LABEL: func.func @odd_boxes(
// IN-PLACE: linalg.transpose {{.*}} permutation = [0, 2, 1]{{ *$}}
// IN-PLACE-NOT: linalg.transpose
#x = affine_map<(m, n, h, d) -> (m, h, d)>
#w = affine_map<(m, n, h, d) -> (d, h, n)>
#y = affine_map<(m, n, h, d) -> (m, n)>
func.func @odd_boxes(%x: tensor<8x2x24xf16>, %w: tensor<24x2x64xf16>, %zeros: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %r = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<8x2x24xf16>, tensor<24x2x64xf16>)
    outs(%zeros : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// IN-PLACE-LABEL: func.func @odd_rows(
// IN-PLACE: linalg.transpose {{.*}} permutation = [0, 2, 1]{{ *$}}
// IN-PLACE-NOT: linalg.transpose
#x = affine_map<(m, n, h, d) -> (m, h, d)>
#w = affine_map<(m, n, h, d) -> (d, h, n)>
#y = affine_map<(m, n, h, d) -> (m, n)>
func.func @odd_rows(%x: tensor<8x2x32xf16>, %w: tensor<32x2x12xf16>, %zeros: tensor<8x12xf32>) -> tensor<8x12xf32> {
  %r = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<8x2x32xf16>, tensor<32x2x12xf16>)
    outs(%zeros : tensor<8x12xf32>) -> tensor<8x12xf32>
  return %r : tensor<8x12xf32>
}
