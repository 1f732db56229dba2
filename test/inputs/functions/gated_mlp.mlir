#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @gated_mlp(%arg0: tensor<16x64xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<96x64xbf16>, %arg3: tensor<64x96xbf16>) -> tensor<16x64xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : bf16
    %0 = tensor.empty() : tensor<64x96xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<96x64xbf16>) outs(%0 : tensor<64x96xbf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<16x96xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<16x96xf32>) -> tensor<16x96xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<16x64xbf16>, tensor<64x96xbf16>) outs(%2 : tensor<16x96xf32>) -> tensor<16x96xf32>
    %4 = tensor.empty() : tensor<16x96xbf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<16x96xf32>) outs(%4 : tensor<16x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %17 = arith.truncf %in : f32 to bf16
      linalg.yield %17 : bf16
    } -> tensor<16x96xbf16>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<16x96xbf16>) outs(%4 : tensor<16x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %17 = arith.negf %in : bf16
      %18 = math.exp %17 : bf16
      %19 = arith.addf %18, %cst_0 : bf16
      %20 = arith.divf %cst_0, %19 : bf16
      linalg.yield %20 : bf16
    } -> tensor<16x96xbf16>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %5 : tensor<16x96xbf16>, tensor<16x96xbf16>) outs(%4 : tensor<16x96xbf16>) {
    ^bb0(%in: bf16, %in_3: bf16, %out: bf16):
      %17 = arith.mulf %in, %in_3 : bf16
      linalg.yield %17 : bf16
    } -> tensor<16x96xbf16>
    %transposed_1 = linalg.transpose ins(%arg2 : tensor<96x64xbf16>) outs(%0 : tensor<64x96xbf16>) permutation = [1, 0] 
    %8 = linalg.matmul ins(%arg0, %transposed_1 : tensor<16x64xbf16>, tensor<64x96xbf16>) outs(%2 : tensor<16x96xf32>) -> tensor<16x96xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<16x96xf32>) outs(%4 : tensor<16x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %17 = arith.truncf %in : f32 to bf16
      linalg.yield %17 : bf16
    } -> tensor<16x96xbf16>
    %10 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %9 : tensor<16x96xbf16>, tensor<16x96xbf16>) outs(%4 : tensor<16x96xbf16>) {
    ^bb0(%in: bf16, %in_3: bf16, %out: bf16):
      %17 = arith.mulf %in, %in_3 : bf16
      linalg.yield %17 : bf16
    } -> tensor<16x96xbf16>
    %11 = tensor.empty() : tensor<96x64xbf16>
    %transposed_2 = linalg.transpose ins(%arg3 : tensor<64x96xbf16>) outs(%11 : tensor<96x64xbf16>) permutation = [1, 0] 
    %12 = tensor.empty() : tensor<16x64xf32>
    %13 = linalg.fill ins(%cst : f32) outs(%12 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %14 = linalg.matmul ins(%10, %transposed_2 : tensor<16x96xbf16>, tensor<96x64xbf16>) outs(%13 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %15 = tensor.empty() : tensor<16x64xbf16>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<16x64xf32>) outs(%15 : tensor<16x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %17 = arith.truncf %in : f32 to bf16
      linalg.yield %17 : bf16
    } -> tensor<16x64xbf16>
    return %16 : tensor<16x64xbf16>
  }
}
