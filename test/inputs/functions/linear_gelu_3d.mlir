#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
module {
  func.func @linear_gelu_3d(%arg0: tensor<2x16x64xbf16>, %arg1: tensor<48x64xbf16>, %arg2: tensor<48xbf16>) -> tensor<2x16x48xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : bf16
    %cst_1 = arith.constant 2.000000e+00 : bf16
    %cst_2 = arith.constant 5.000000e-01 : bf16
    %0 = tensor.empty() : tensor<64x48xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<48x64xbf16>) outs(%0 : tensor<64x48xbf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2x64x48xbf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<64x48xbf16>) outs(%1 : tensor<2x64x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x48xbf16>
    %3 = tensor.empty() : tensor<2x16x48xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x16x48xf32>) -> tensor<2x16x48xf32>
    %5 = linalg.batch_matmul ins(%arg0, %2 : tensor<2x16x64xbf16>, tensor<2x64x48xbf16>) outs(%4 : tensor<2x16x48xf32>) -> tensor<2x16x48xf32>
    %6 = tensor.empty() : tensor<2x16x48xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x16x48xf32>) outs(%6 : tensor<2x16x48xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %10 = arith.truncf %in : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<2x16x48xbf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %arg2 : tensor<2x16x48xbf16>, tensor<48xbf16>) outs(%6 : tensor<2x16x48xbf16>) {
    ^bb0(%in: bf16, %in_3: bf16, %out: bf16):
      %10 = arith.addf %in, %in_3 : bf16
      linalg.yield %10 : bf16
    } -> tensor<2x16x48xbf16>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x16x48xbf16>) outs(%6 : tensor<2x16x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %10 = math.sqrt %cst_1 : bf16
      %11 = arith.divf %in, %10 : bf16
      %12 = math.erf %11 : bf16
      %13 = arith.addf %12, %cst_0 : bf16
      %14 = arith.mulf %13, %cst_2 : bf16
      %15 = arith.mulf %in, %14 : bf16
      linalg.yield %15 : bf16
    } -> tensor<2x16x48xbf16>
    return %9 : tensor<2x16x48xbf16>
  }
}
