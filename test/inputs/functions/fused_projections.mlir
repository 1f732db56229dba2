#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
module {
  func.func @fused_projections(%arg0: tensor<2x16x64xbf16>, %arg1: tensor<192x64xbf16>, %arg2: tensor<192xbf16>) -> (tensor<2x16x64xbf16>, tensor<2x16x64xbf16>, tensor<2x16x64xbf16>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x192xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<192x64xbf16>) outs(%0 : tensor<64x192xbf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2x64x192xbf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<64x192xbf16>) outs(%1 : tensor<2x64x192xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x192xbf16>
    %3 = tensor.empty() : tensor<2x16x192xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x16x192xf32>) -> tensor<2x16x192xf32>
    %5 = linalg.batch_matmul ins(%arg0, %2 : tensor<2x16x64xbf16>, tensor<2x64x192xbf16>) outs(%4 : tensor<2x16x192xf32>) -> tensor<2x16x192xf32>
    %6 = tensor.empty() : tensor<2x16x192xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x16x192xf32>) outs(%6 : tensor<2x16x192xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %9 = arith.truncf %in : f32 to bf16
      linalg.yield %9 : bf16
    } -> tensor<2x16x192xbf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %arg2 : tensor<2x16x192xbf16>, tensor<192xbf16>) outs(%6 : tensor<2x16x192xbf16>) {
    ^bb0(%in: bf16, %in_2: bf16, %out: bf16):
      %9 = arith.addf %in, %in_2 : bf16
      linalg.yield %9 : bf16
    } -> tensor<2x16x192xbf16>
    %extracted_slice = tensor.extract_slice %8[0, 0, 0] [2, 16, 64] [1, 1, 1] : tensor<2x16x192xbf16> to tensor<2x16x64xbf16>
    %extracted_slice_0 = tensor.extract_slice %8[0, 0, 64] [2, 16, 64] [1, 1, 1] : tensor<2x16x192xbf16> to tensor<2x16x64xbf16>
    %extracted_slice_1 = tensor.extract_slice %8[0, 0, 128] [2, 16, 64] [1, 1, 1] : tensor<2x16x192xbf16> to tensor<2x16x64xbf16>
    return %extracted_slice, %extracted_slice_0, %extracted_slice_1 : tensor<2x16x64xbf16>, tensor<2x16x64xbf16>, tensor<2x16x64xbf16>
  }
}
