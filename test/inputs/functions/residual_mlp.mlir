#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @residual_mlp(%arg0: tensor<16x64xf16>, %arg1: tensor<128x64xf16>, %arg2: tensor<128xf16>, %arg3: tensor<64x128xf16>, %arg4: tensor<64xf16>) -> tensor<16x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f16
    %cst_1 = arith.constant 2.000000e+00 : f16
    %cst_2 = arith.constant 5.000000e-01 : f16
    %0 = tensor.empty() : tensor<64x128xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<128x64xf16>) outs(%0 : tensor<64x128xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<16x128xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<16x64xf16>, tensor<64x128xf16>) outs(%2 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %4 = tensor.empty() : tensor<16x128xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<16x128xf32>) outs(%4 : tensor<16x128xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<16x128xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %arg2 : tensor<16x128xf16>, tensor<128xf16>) outs(%4 : tensor<16x128xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %16 = arith.addf %in, %in_4 : f16
      linalg.yield %16 : f16
    } -> tensor<16x128xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<16x128xf16>) outs(%4 : tensor<16x128xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = math.sqrt %cst_1 : f16
      %17 = arith.divf %in, %16 : f16
      %18 = math.erf %17 : f16
      %19 = arith.addf %18, %cst_0 : f16
      %20 = arith.mulf %19, %cst_2 : f16
      %21 = arith.mulf %in, %20 : f16
      linalg.yield %21 : f16
    } -> tensor<16x128xf16>
    %8 = tensor.empty() : tensor<128x64xf16>
    %transposed_3 = linalg.transpose ins(%arg3 : tensor<64x128xf16>) outs(%8 : tensor<128x64xf16>) permutation = [1, 0] 
    %9 = tensor.empty() : tensor<16x64xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %11 = linalg.matmul ins(%7, %transposed_3 : tensor<16x128xf16>, tensor<128x64xf16>) outs(%10 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %12 = tensor.empty() : tensor<16x64xf16>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<16x64xf32>) outs(%12 : tensor<16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<16x64xf16>
    %14 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %arg4 : tensor<16x64xf16>, tensor<64xf16>) outs(%12 : tensor<16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %16 = arith.addf %in, %in_4 : f16
      linalg.yield %16 : f16
    } -> tensor<16x64xf16>
    %15 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %14 : tensor<16x64xf16>, tensor<16x64xf16>) outs(%12 : tensor<16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %16 = arith.addf %in, %in_4 : f16
      linalg.yield %16 : f16
    } -> tensor<16x64xf16>
    return %15 : tensor<16x64xf16>
  }
}
