// C = max(AB, 0) * AG, rounded: two products of one A, as a gated layer has them.
func.func @gated(%A: tensor<128x64xf16>, %B: tensor<64x128xf16>, %G: tensor<64x128xf16>) -> tensor<128x128xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<128x64xf16>, tensor<64x128xf16>) outs(%z : tensor<128x128xf32>) -> tensor<128x128xf32>
  %q = linalg.matmul ins(%A, %G : tensor<128x64xf16>, tensor<64x128xf16>) outs(%z : tensor<128x128xf32>) -> tensor<128x128xf32>
  %h = tensor.empty() : tensor<128x128xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<128x128xf32>, tensor<128x128xf32>) outs(%h : tensor<128x128xf16>) {
  ^bb0(%x: f32, %y: f32, %o: f16):
    %m = arith.maximumf %x, %zero : f32
    %t = arith.mulf %m, %y : f32
    %c = arith.truncf %t : f32 to f16
    linalg.yield %c : f16
  } -> tensor<128x128xf16>
  return %r : tensor<128x128xf16>
}
