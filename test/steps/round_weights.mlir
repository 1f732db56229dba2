// Weights of f32 are rounded to the type of the values before they multiply them; the sums stay f32. Functions that are
// no attention of their own, and weights that are rounded already, stay as they are.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step round_weights --set attention=true \
// RUN:   --set attention_weights=rounded | FileCheck %s

#all = affine_map<(h, t, s) -> (h, t, s)>
#rows = affine_map<(h, t, s) -> (h, t)>
#q = affine_map<(h, t, s, d) -> (h, t, d)>
#k = affine_map<(h, t, s, d) -> (h, s, d)>
#s = affine_map<(h, t, s, d) -> (h, t, s)>
#v = affine_map<(h, t, d, s) -> (h, s, d)>
#p = affine_map<(h, t, d, s) -> (h, t, s)>
#o = affine_map<(h, t, d, s) -> (h, t, d)>

// CHECK-LABEL: func.func @calls(
// CHECK-NEXT: call @wide
// CHECK-NEXT: call @narrow
func.func @calls(%q: tensor<2x128x64xbf16>, %k: tensor<2x256x64xbf16>, %v: tensor<2x256x64xbf16>)
    -> tensor<2x128x64xbf16> {
  %0 = call @wide(%q, %k, %v)
    : (tensor<2x128x64xbf16>, tensor<2x256x64xbf16>, tensor<2x256x64xbf16>) -> tensor<2x128x64xbf16>
  %1 = call @narrow(%0, %k, %v)
    : (tensor<2x128x64xbf16>, tensor<2x256x64xbf16>, tensor<2x256x64xbf16>) -> tensor<2x128x64xbf16>
  return %1 : tensor<2x128x64xbf16>
}

// CHECK-LABEL: func.func private @wide(
// CHECK: arith.divf
// CHECK-NEXT: linalg.yield {{.*}} : f32
// CHECK: [[rounded:%.+]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x128x256xbf16>)
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: linalg.contract {{.*}} ins([[rounded]], {{.*}} : tensor<2x128x256xbf16>, tensor<2x256x64xbf16>)
func.func private @wide(%q: tensor<2x128x64xbf16>, %k: tensor<2x256x64xbf16>, %v: tensor<2x256x64xbf16>)
    -> tensor<2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<2x128x256xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x128x256xf32>) -> tensor<2x128x256xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<2x128x64xbf16>, tensor<2x256x64xbf16>)
    outs(%1 : tensor<2x128x256xf32>) -> tensor<2x128x256xf32>
  %2 = tensor.empty() : tensor<2x128xf32>
  %lows = linalg.fill ins(%low : f32) outs(%2 : tensor<2x128xf32>) -> tensor<2x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%2 : tensor<2x128xf32>) -> tensor<2x128xf32>
  %maxima = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : tensor<2x128x256xf32>) outs(%lows : tensor<2x128xf32>) {
  ^bb0(%x: f32, %m: f32):
    %new = arith.maximumf %x, %m : f32
    linalg.yield %new : f32
  } -> tensor<2x128xf32>
  %powers = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %maxima : tensor<2x128x256xf32>, tensor<2x128xf32>) outs(%0 : tensor<2x128x256xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x128x256xf32>
  %sums = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers : tensor<2x128x256xf32>) outs(%zeros : tensor<2x128xf32>) {
  ^bb0(%x: f32, %out: f32):
    %new = arith.addf %x, %out : f32
    linalg.yield %new : f32
  } -> tensor<2x128xf32>
  %3 = tensor.empty() : tensor<2x128x256xf32>
  %weights = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%powers, %sums : tensor<2x128x256xf32>, tensor<2x128xf32>) outs(%3 : tensor<2x128x256xf32>) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %w = arith.divf %x, %s : f32
    linalg.yield %w : f32
  } -> tensor<2x128x256xf32>
  %4 = tensor.empty() : tensor<2x128x64xf32>
  %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %sum = linalg.contract indexing_maps = [#p, #v, #o] ins(%weights, %v : tensor<2x128x256xf32>, tensor<2x256x64xbf16>)
    outs(%5 : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %6 = tensor.empty() : tensor<2x128x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum : tensor<2x128x64xf32>) outs(%6 : tensor<2x128x64xbf16>) {
  ^bb0(%x: f32, %out: bf16):
    %r = arith.truncf %x : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x128x64xbf16>
  return %y : tensor<2x128x64xbf16>
}

// CHECK-LABEL: func.func private @narrow(
// CHECK: arith.divf
// CHECK-NEXT: arith.truncf
// CHECK-NOT: arith.truncf
// CHECK: linalg.contract
func.func private @narrow(%q: tensor<2x128x64xbf16>, %k: tensor<2x256x64xbf16>, %v: tensor<2x256x64xbf16>)
    -> tensor<2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<2x128x256xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x128x256xf32>) -> tensor<2x128x256xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<2x128x64xbf16>, tensor<2x256x64xbf16>)
    outs(%1 : tensor<2x128x256xf32>) -> tensor<2x128x256xf32>
  %2 = tensor.empty() : tensor<2x128xf32>
  %lows = linalg.fill ins(%low : f32) outs(%2 : tensor<2x128xf32>) -> tensor<2x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%2 : tensor<2x128xf32>) -> tensor<2x128xf32>
  %maxima = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : tensor<2x128x256xf32>) outs(%lows : tensor<2x128xf32>) {
  ^bb0(%x: f32, %m: f32):
    %new = arith.maximumf %x, %m : f32
    linalg.yield %new : f32
  } -> tensor<2x128xf32>
  %powers = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %maxima : tensor<2x128x256xf32>, tensor<2x128xf32>) outs(%0 : tensor<2x128x256xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<2x128x256xf32>
  %sums = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers : tensor<2x128x256xf32>) outs(%zeros : tensor<2x128xf32>) {
  ^bb0(%x: f32, %out: f32):
    %new = arith.addf %x, %out : f32
    linalg.yield %new : f32
  } -> tensor<2x128xf32>
  %3 = tensor.empty() : tensor<2x128x256xbf16>
  %weights = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%powers, %sums : tensor<2x128x256xf32>, tensor<2x128xf32>) outs(%3 : tensor<2x128x256xbf16>) {
  ^bb0(%x: f32, %s: f32, %out: bf16):
    %w = arith.divf %x, %s : f32
    %r = arith.truncf %w : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x128x256xbf16>
  %4 = tensor.empty() : tensor<2x128x64xf32>
  %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %sum = linalg.contract indexing_maps = [#p, #v, #o] ins(%weights, %v : tensor<2x128x256xbf16>, tensor<2x256x64xbf16>)
    outs(%5 : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %6 = tensor.empty() : tensor<2x128x64xbf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum : tensor<2x128x64xf32>) outs(%6 : tensor<2x128x64xbf16>) {
  ^bb0(%x: f32, %out: bf16):
    %r = arith.truncf %x : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x128x64xbf16>
  return %y : tensor<2x128x64xbf16>
}
