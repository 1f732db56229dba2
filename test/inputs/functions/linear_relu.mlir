#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @linear_relu(%arg0: tensor<32x64xf16>, %arg1: tensor<48x64xf16>, %arg2: tensor<48xf16>) -> tensor<32x48xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %0 = tensor.empty() : tensor<64x48xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<48x64xf16>) outs(%0 : tensor<64x48xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<32x48xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<32x48xf32>) -> tensor<32x48xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<32x64xf16>, tensor<64x48xf16>) outs(%2 : tensor<32x48xf32>) -> tensor<32x48xf32>
    %4 = tensor.empty() : tensor<32x48xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<32x48xf32>) outs(%4 : tensor<32x48xf16>) {
    ^bb0(%in: f32, %out: f16):
      %8 = arith.truncf %in : f32 to f16
      linalg.yield %8 : f16
    } -> tensor<32x48xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %arg2 : tensor<32x48xf16>, tensor<48xf16>) outs(%4 : tensor<32x48xf16>) {
    ^bb0(%in: f16, %in_1: f16, %out: f16):
      %8 = arith.addf %in, %in_1 : f16
      linalg.yield %8 : f16
    } -> tensor<32x48xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<32x48xf16>) outs(%4 : tensor<32x48xf16>) {
    ^bb0(%in: f16, %out: f16):
      %8 = arith.cmpf ugt, %in, %cst_0 : f16
      %9 = arith.select %8, %in, %cst_0 : f16
      linalg.yield %9 : f16
    } -> tensor<32x48xf16>
    return %7 : tensor<32x48xf16>
  }
}
