// Products of queries and keys, their softmax and the product with the values become one function, with the views
// between them and the rounding of the result.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step outline_attention --set attention=true \
// RUN:   --split-input-file | FileCheck %s

#all = affine_map<(h, t, s) -> (h, t, s)>
#rows = affine_map<(h, t, s) -> (h, t, 0)>
#q = affine_map<(h, t, s, d) -> (t, h, d)>
#k = affine_map<(h, t, s, d) -> (s, d)>
#s = affine_map<(h, t, s, d) -> (h, t, s)>
#v = affine_map<(h, t, d, s) -> (s, d)>
#p = affine_map<(h, t, d, s) -> (h, t, s)>
#o = affine_map<(h, t, d, s) -> (t, h, d)>

// CHECK-LABEL: func.func @views(
// CHECK-SAME: [[q:%.+]]: tensor<128x4x64xf16>, [[k:%.+]]: tensor<256x64xf16>, [[v:%[^:]+]]: tensor<256x64xf16>
// CHECK-NOT: linalg.contract
// CHECK: [[o:%.+]] = call @views_attention_0([[q]], [[k]], [[v]]) : {{.*}} -> tensor<128x4x64xf16>
// CHECK-NEXT: return [[o]]
// CHECK: func.func private @views_attention_0({{.*}} {bufferization.writable = false}, {{.*}})
// CHECK: linalg.contract
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.contract
// CHECK: arith.truncf
// CHECK: return {{.*}} : tensor<128x4x64xf16>
func.func @views(%q: tensor<128x4x64xf16>, %k: tensor<256x64xf16>, %v: tensor<256x64xf16>) -> tensor<128x4x64xf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %0 = tensor.empty() : tensor<4x128x256xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<4x128x256xf32>) -> tensor<4x128x256xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<128x4x64xf16>, tensor<256x64xf16>)
    outs(%1 : tensor<4x128x256xf32>) -> tensor<4x128x256xf32>
  %divided = tensor.expand_shape %scores [[0, 1], [2], [3]] output_shape [2, 2, 128, 256]
    : tensor<4x128x256xf32> into tensor<2x2x128x256xf32>
  %logits = tensor.collapse_shape %divided [[0, 1], [2], [3]] : tensor<2x2x128x256xf32> into tensor<4x128x256xf32>
  %2 = tensor.empty() : tensor<4x128xf32>
  %3 = tensor.empty() : tensor<4x128xi64>
  %lows = linalg.fill ins(%low : f32) outs(%2 : tensor<4x128xf32>) -> tensor<4x128xf32>
  %places = linalg.fill ins(%none : i64) outs(%3 : tensor<4x128xi64>) -> tensor<4x128xi64>
  // The place of the maximum, which nothing reads.
  %max, %place = linalg.generic {indexing_maps = [#all, affine_map<(h, t, s) -> (h, t)>, affine_map<(h, t, s) -> (h, t)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%logits : tensor<4x128x256xf32>) outs(%lows, %places : tensor<4x128xf32>, tensor<4x128xi64>) {
  ^bb0(%x: f32, %m: f32, %i: i64):
    %new = arith.maximumf %x, %m : f32
    linalg.yield %new, %i : f32, i64
  } -> (tensor<4x128xf32>, tensor<4x128xi64>)
  %maxima = tensor.expand_shape %max [[0], [1, 2]] output_shape [4, 128, 1] : tensor<4x128xf32> into tensor<4x128x1xf32>
  %powers = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%logits, %maxima : tensor<4x128x256xf32>, tensor<4x128x1xf32>) outs(%0 : tensor<4x128x256xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<4x128x256xf32>
  %4 = tensor.empty() : tensor<4x128x1xf32>
  %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<4x128x1xf32>) -> tensor<4x128x1xf32>
  %sums = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers : tensor<4x128x256xf32>) outs(%5 : tensor<4x128x1xf32>) {
  ^bb0(%x: f32, %out: f32):
    %new = arith.addf %x, %out : f32
    linalg.yield %new : f32
  } -> tensor<4x128x1xf32>
  %6 = tensor.empty() : tensor<4x128x256xf16>
  %weights = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%powers, %sums : tensor<4x128x256xf32>, tensor<4x128x1xf32>) outs(%6 : tensor<4x128x256xf16>) {
  ^bb0(%x: f32, %s: f32, %out: f16):
    %w = arith.divf %x, %s : f32
    %r = arith.truncf %w : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4x128x256xf16>
  %7 = tensor.empty() : tensor<128x4x64xf32>
  %8 = linalg.fill ins(%zero : f32) outs(%7 : tensor<128x4x64xf32>) -> tensor<128x4x64xf32>
  %wide = linalg.contract indexing_maps = [#p, #v, #o] ins(%weights, %v : tensor<4x128x256xf16>, tensor<256x64xf16>)
    outs(%8 : tensor<128x4x64xf32>) -> tensor<128x4x64xf32>
  %9 = tensor.empty() : tensor<128x4x64xf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%wide : tensor<128x4x64xf32>) outs(%9 : tensor<128x4x64xf16>) {
  ^bb0(%x: f32, %out: f16):
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  } -> tensor<128x4x64xf16>
  return %y : tensor<128x4x64xf16>
}

// -----

// An attention as torch-mlir writes it: operands are extended to f32, and scores have the places of their maxima, and
// rows without keys weights of zero. The products read the f16 tensors, and keys as they are.
#four = affine_map<(b, h, t, s) -> (b, h, t, s)>
#three = affine_map<(b, h, t, s) -> (b, h, t)>
#one = affine_map<(b, h, t, s) -> (b, h, t, 0)>

// CHECK-LABEL: func.func @exported(
// CHECK-SAME: [[q:%.+]]: tensor<1x4x128x64xf16>, [[k:%.+]]: tensor<1x4x256x64xf16>, [[v:%[^:]+]]: tensor<1x4x256x64xf16>
// CHECK-NOT: linalg.transpose
// CHECK-DAG: [[queries:%.+]] = tensor.collapse_shape [[q]]
// CHECK-DAG: [[keys:%.+]] = tensor.collapse_shape [[k]]
// CHECK-DAG: [[values:%.+]] = tensor.collapse_shape [[v]]
// CHECK: call @exported_attention_0({{.*}}) : ({{.*}}) -> tensor<4x128x64xf16>
// CHECK: func.func private @exported_attention_0(
// CHECK: linalg.contract {{.*}} : tensor<4x128x64xf16>, tensor<4x256x64xf16>
// CHECK: arith.maximumf
// CHECK-NOT: cmpf ogt
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: cmpf oeq
// CHECK: arith.divf
// CHECK: arith.select
// CHECK: linalg.contract {{.*}} : tensor<4x128x256xf32>, tensor<4x256x64xf16>
// CHECK: arith.truncf
func.func @exported(%q: tensor<1x4x128x64xf16>, %k: tensor<1x4x256x64xf16>, %v: tensor<1x4x256x64xf16>)
    -> tensor<1x4x128x64xf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %lowest = arith.constant 0xFFF0000000000000 : f64
  %none = arith.constant 0 : i64
  %true = arith.constant true
  %zeros = arith.constant dense<0.0> : tensor<1x4x128x256xf32>
  %0 = tensor.empty() : tensor<1x4x128x64xf32>
  %1 = linalg.generic {indexing_maps = [#four, #four], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q : tensor<1x4x128x64xf16>) outs(%0 : tensor<1x4x128x64xf32>) {
  ^bb0(%x: f16, %out: f32):
    %w = arith.extf %x : f16 to f32
    linalg.yield %w : f32
  } -> tensor<1x4x128x64xf32>
  %2 = tensor.empty() : tensor<1x4x256x64xf32>
  %3 = linalg.generic {indexing_maps = [#four, #four], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<1x4x256x64xf16>) outs(%2 : tensor<1x4x256x64xf32>) {
  ^bb0(%x: f16, %out: f32):
    %w = arith.extf %x : f16 to f32
    linalg.yield %w : f32
  } -> tensor<1x4x256x64xf32>
  %4 = linalg.generic {indexing_maps = [#four, #four], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v : tensor<1x4x256x64xf16>) outs(%2 : tensor<1x4x256x64xf32>) {
  ^bb0(%x: f16, %out: f32):
    %w = arith.extf %x : f16 to f32
    linalg.yield %w : f32
  } -> tensor<1x4x256x64xf32>
  %5 = tensor.empty() : tensor<1x4x64x256xf32>
  %6 = linalg.transpose ins(%3 : tensor<1x4x256x64xf32>) outs(%5 : tensor<1x4x64x256xf32>) permutation = [0, 1, 3, 2]
  %7 = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<1x4x128x64xf32> into tensor<4x128x64xf32>
  %8 = tensor.collapse_shape %6 [[0, 1], [2], [3]] : tensor<1x4x64x256xf32> into tensor<4x64x256xf32>
  %9 = tensor.empty() : tensor<4x128x256xf32>
  %10 = linalg.fill ins(%zero : f32) outs(%9 : tensor<4x128x256xf32>) -> tensor<4x128x256xf32>
  %11 = linalg.batch_matmul ins(%7, %8 : tensor<4x128x64xf32>, tensor<4x64x256xf32>)
    outs(%10 : tensor<4x128x256xf32>) -> tensor<4x128x256xf32>
  %scores = tensor.expand_shape %11 [[0, 1], [2], [3]] output_shape [1, 4, 128, 256]
    : tensor<4x128x256xf32> into tensor<1x4x128x256xf32>
  %12 = tensor.empty() : tensor<1x4x128xi64>
  %13 = linalg.fill ins(%none : i64) outs(%12 : tensor<1x4x128xi64>) -> tensor<1x4x128xi64>
  %14 = tensor.empty() : tensor<1x4x128xf32>
  %15 = linalg.fill ins(%low : f32) outs(%14 : tensor<1x4x128xf32>) -> tensor<1x4x128xf32>
  %max, %place = linalg.generic {indexing_maps = [#four, #three, #three],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%scores : tensor<1x4x128x256xf32>) outs(%15, %13 : tensor<1x4x128xf32>, tensor<1x4x128xi64>) {
  ^bb0(%x: f32, %m: f32, %at: i64):
    %i = linalg.index 3 : index
    %n = arith.index_cast %i : index to i64
    %new = arith.maximumf %x, %m : f32
    %is_new = arith.cmpf ogt, %x, %m : f32
    %p = arith.select %is_new, %n, %at : i64
    linalg.yield %new, %p : f32, i64
  } -> (tensor<1x4x128xf32>, tensor<1x4x128xi64>)
  %maxima = tensor.expand_shape %max [[0], [1], [2, 3]] output_shape [1, 4, 128, 1]
    : tensor<1x4x128xf32> into tensor<1x4x128x1xf32>
  %16 = tensor.empty() : tensor<1x4x128x256xf32>
  %powers = linalg.generic {indexing_maps = [#four, #one, #four],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scores, %maxima : tensor<1x4x128x256xf32>, tensor<1x4x128x1xf32>) outs(%16 : tensor<1x4x128x256xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<1x4x128x256xf32>
  %17 = tensor.empty() : tensor<1x4x128x1xf32>
  %18 = linalg.fill ins(%zero : f32) outs(%17 : tensor<1x4x128x1xf32>) -> tensor<1x4x128x1xf32>
  %sums = linalg.generic {indexing_maps = [#four, #one],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%powers : tensor<1x4x128x256xf32>) outs(%18 : tensor<1x4x128x1xf32>) {
  ^bb0(%x: f32, %out: f32):
    %new = arith.addf %x, %out : f32
    linalg.yield %new : f32
  } -> tensor<1x4x128x1xf32>
  %softmax = linalg.generic {indexing_maps = [#four, #one, #four],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%powers, %sums : tensor<1x4x128x256xf32>, tensor<1x4x128x1xf32>) outs(%16 : tensor<1x4x128x256xf32>) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %w = arith.divf %x, %s : f32
    linalg.yield %w : f32
  } -> tensor<1x4x128x256xf32>
  %19 = tensor.empty() : tensor<1x4x128x256xi1>
  %is_low = linalg.generic {indexing_maps = [#four, #four],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scores : tensor<1x4x128x256xf32>) outs(%19 : tensor<1x4x128x256xi1>) {
  ^bb0(%x: f32, %out: i1):
    %wide = arith.extf %x : f32 to f64
    %is = arith.cmpf oeq, %wide, %lowest : f64
    linalg.yield %is : i1
  } -> tensor<1x4x128x256xi1>
  %20 = tensor.empty() : tensor<1x4x128x1xi1>
  %21 = linalg.fill ins(%true : i1) outs(%20 : tensor<1x4x128x1xi1>) -> tensor<1x4x128x1xi1>
  %hidden = linalg.generic {indexing_maps = [#four, #one],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%is_low : tensor<1x4x128x256xi1>) outs(%21 : tensor<1x4x128x1xi1>) {
  ^bb0(%x: i1, %out: i1):
    %all = arith.andi %x, %out : i1
    linalg.yield %all : i1
  } -> tensor<1x4x128x1xi1>
  %weights = linalg.generic {indexing_maps = [#one, #four, #four, #four],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%hidden, %zeros, %softmax : tensor<1x4x128x1xi1>, tensor<1x4x128x256xf32>, tensor<1x4x128x256xf32>)
      outs(%16 : tensor<1x4x128x256xf32>) {
  ^bb0(%is: i1, %z: f32, %x: f32, %out: f32):
    %w = arith.select %is, %z, %x : f32
    linalg.yield %w : f32
  } -> tensor<1x4x128x256xf32>
  %22 = tensor.collapse_shape %weights [[0, 1], [2], [3]] : tensor<1x4x128x256xf32> into tensor<4x128x256xf32>
  %23 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<1x4x256x64xf32> into tensor<4x256x64xf32>
  %24 = tensor.empty() : tensor<4x128x64xf32>
  %25 = linalg.fill ins(%zero : f32) outs(%24 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  %26 = linalg.batch_matmul ins(%22, %23 : tensor<4x128x256xf32>, tensor<4x256x64xf32>)
    outs(%25 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  %27 = tensor.expand_shape %26 [[0, 1], [2], [3]] output_shape [1, 4, 128, 64]
    : tensor<4x128x64xf32> into tensor<1x4x128x64xf32>
  %28 = tensor.empty() : tensor<1x4x128x64xf16>
  %y = linalg.generic {indexing_maps = [#four, #four], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%27 : tensor<1x4x128x64xf32>) outs(%28 : tensor<1x4x128x64xf16>) {
  ^bb0(%x: f32, %out: f16):
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1x4x128x64xf16>
  return %y : tensor<1x4x128x64xf16>
}

// -----

#all = affine_map<(h, t, s) -> (h, t, s)>
#rows = affine_map<(h, t, s) -> (h, t)>
#q = affine_map<(h, t, s, d) -> (t, h, d)>
#k = affine_map<(h, t, s, d) -> (s, d)>
#s = affine_map<(h, t, s, d) -> (h, t, s)>
#v = affine_map<(h, t, d, s) -> (s, d)>
#p = affine_map<(h, t, d, s) -> (h, t, s)>
#o = affine_map<(h, t, d, s) -> (t, h, d)>

// Scores with an assertion, which stays where its op is fused with its readers, and then has no result.
// CHECK-LABEL: func.func @asserted(
// CHECK: linalg.contract
// CHECK: cf.assert
// CHECK: linalg.contract
// CHECK: return {{.*}} : tensor<128x4x64xf32>
func.func @asserted(%q: tensor<128x4x64xf16>, %k: tensor<256x64xf16>, %v: tensor<256x64xf16>) -> tensor<128x4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<4x128x256xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<4x128x256xf32>) -> tensor<4x128x256xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<128x4x64xf16>, tensor<256x64xf16>)
    outs(%1 : tensor<4x128x256xf32>) -> tensor<4x128x256xf32>
  %numbers = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<4x128x256xf32>) outs(%0 : tensor<4x128x256xf32>) {
  ^bb0(%x: f32, %out: f32):
    %is = arith.cmpf ord, %x, %x : f32
    cf.assert %is, "no number"
    %l = arith.addf %x, %x : f32
    linalg.yield %l : f32
  } -> tensor<4x128x256xf32>
  %logits = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%numbers : tensor<4x128x256xf32>) outs(%0 : tensor<4x128x256xf32>) {
  ^bb0(%x: f32, %out: f32):
    %l = math.tanh %x : f32
    linalg.yield %l : f32
  } -> tensor<4x128x256xf32>
  %2 = tensor.empty() : tensor<4x128xf32>
  %lows = linalg.fill ins(%low : f32) outs(%2 : tensor<4x128xf32>) -> tensor<4x128xf32>
  %max = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%logits : tensor<4x128x256xf32>) outs(%lows : tensor<4x128xf32>) {
  ^bb0(%x: f32, %m: f32):
    %new = arith.maximumf %x, %m : f32
    linalg.yield %new : f32
  } -> tensor<4x128xf32>
  %powers = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%logits, %max : tensor<4x128x256xf32>, tensor<4x128xf32>) outs(%0 : tensor<4x128x256xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<4x128x256xf32>
  %3 = tensor.empty() : tensor<128x4x64xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<128x4x64xf32>) -> tensor<128x4x64xf32>
  %values = linalg.contract indexing_maps = [#p, #v, #o] ins(%powers, %v : tensor<4x128x256xf32>, tensor<256x64xf16>)
    outs(%4 : tensor<128x4x64xf32>) -> tensor<128x4x64xf32>
  return %values : tensor<128x4x64xf32>
}

// -----

// The positions of rows and columns, which a causal mask compares, are computed for each.
// CHECK-LABEL: func.func @positions(
// CHECK: [[t:%.+]] = linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.index 0
// CHECK: [[s:%.+]] = linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.index 0
// CHECK: linalg.generic {{.*}} ins(%x, [[t]], [[s]] :
func.func @positions(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<64xi64>
  %places = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%0 : tensor<64xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<64xi64>
  %1 = tensor.empty() : tensor<64x64xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(t, s) -> (t, s)>, affine_map<(t, s) -> (t)>, affine_map<(t, s) -> (s)>,
                       affine_map<(t, s) -> (t, s)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %places, %places : tensor<64x64xf32>, tensor<64xi64>, tensor<64xi64>) outs(%1 : tensor<64x64xf32>) {
  ^bb0(%score: f32, %query: i64, %key: i64, %out: f32):
    %is_seen = arith.cmpi sle, %key, %query : i64
    %r = arith.select %is_seen, %score, %low : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
