#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @matmul_3d_2d(%arg0: tensor<2x16x64xbf16>, %arg1: tensor<64x48xbf16>) -> tensor<2x16x48xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x64x48xbf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<64x48xbf16>) outs(%0 : tensor<2x64x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x48xbf16>
    %2 = tensor.empty() : tensor<2x16x48xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x16x48xf32>) -> tensor<2x16x48xf32>
    %4 = linalg.batch_matmul ins(%arg0, %1 : tensor<2x16x64xbf16>, tensor<2x64x48xbf16>) outs(%3 : tensor<2x16x48xf32>) -> tensor<2x16x48xf32>
    %5 = tensor.empty() : tensor<2x16x48xbf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<2x16x48xf32>) outs(%5 : tensor<2x16x48xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %7 = arith.truncf %in : f32 to bf16
      linalg.yield %7 : bf16
    } -> tensor<2x16x48xbf16>
    return %6 : tensor<2x16x48xbf16>
  }
}
