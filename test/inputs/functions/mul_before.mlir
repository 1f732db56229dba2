#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @mul_before(%arg0: tensor<16x64xf16>, %arg1: tensor<16x64xf16>, %arg2: tensor<32x64xf16>, %arg3: tensor<32xf16>) -> tensor<16x32xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<16x64xf16>
    %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<16x64xf16>, tensor<16x64xf16>) outs(%0 : tensor<16x64xf16>) {
    ^bb0(%in: f16, %in_0: f16, %out: f16):
      %9 = arith.mulf %in, %in_0 : f16
      linalg.yield %9 : f16
    } -> tensor<16x64xf16>
    %2 = tensor.empty() : tensor<64x32xf16>
    %transposed = linalg.transpose ins(%arg2 : tensor<32x64xf16>) outs(%2 : tensor<64x32xf16>) permutation = [1, 0] 
    %3 = tensor.empty() : tensor<16x32xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %5 = linalg.matmul ins(%1, %transposed : tensor<16x64xf16>, tensor<64x32xf16>) outs(%4 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %6 = tensor.empty() : tensor<16x32xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<16x32xf32>) outs(%6 : tensor<16x32xf16>) {
    ^bb0(%in: f32, %out: f16):
      %9 = arith.truncf %in : f32 to f16
      linalg.yield %9 : f16
    } -> tensor<16x32xf16>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %arg3 : tensor<16x32xf16>, tensor<32xf16>) outs(%6 : tensor<16x32xf16>) {
    ^bb0(%in: f16, %in_0: f16, %out: f16):
      %9 = arith.addf %in, %in_0 : f16
      linalg.yield %9 : f16
    } -> tensor<16x32xf16>
    return %8 : tensor<16x32xf16>
  }
}
