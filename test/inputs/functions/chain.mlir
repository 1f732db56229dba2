#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @chain(%arg0: tensor<16x48xbf16>, %arg1: tensor<48x32xbf16>, %arg2: tensor<32x64xbf16>) -> tensor<16x64xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<16x48xbf16>, tensor<48x32xbf16>) outs(%1 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %3 = tensor.empty() : tensor<16x32xbf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<16x32xf32>) outs(%3 : tensor<16x32xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %10 = arith.truncf %in : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<16x32xbf16>
    %5 = tensor.empty() : tensor<16x64xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %7 = linalg.matmul ins(%4, %arg2 : tensor<16x32xbf16>, tensor<32x64xbf16>) outs(%6 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %8 = tensor.empty() : tensor<16x64xbf16>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<16x64xf32>) outs(%8 : tensor<16x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %10 = arith.truncf %in : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<16x64xbf16>
    return %9 : tensor<16x64xbf16>
  }
}
