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
// CHECK: tensor.expand_shape
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
