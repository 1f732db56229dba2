#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @low_rank_linear(%arg0: tensor<48x32xf16>, %arg1: tensor<8x32xf16>, %arg2: tensor<48x8xf16>, %arg3: tensor<8x32xf16>) -> tensor<8x48xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f16
    %0 = tensor.empty() : tensor<32x48xf16>
    %transposed = linalg.transpose ins(%arg0 : tensor<48x32xf16>) outs(%0 : tensor<32x48xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<8x48xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<8x48xf32>) -> tensor<8x48xf32>
    %3 = linalg.matmul ins(%arg3, %transposed : tensor<8x32xf16>, tensor<32x48xf16>) outs(%2 : tensor<8x48xf32>) -> tensor<8x48xf32>
    %4 = tensor.empty() : tensor<8x48xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<8x48xf32>) outs(%4 : tensor<8x48xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<8x48xf16>
    %6 = tensor.empty() : tensor<32x8xf16>
    %transposed_1 = linalg.transpose ins(%arg1 : tensor<8x32xf16>) outs(%6 : tensor<32x8xf16>) permutation = [1, 0] 
    %7 = tensor.empty() : tensor<8x8xf32>
    %8 = linalg.fill ins(%cst : f32) outs(%7 : tensor<8x8xf32>) -> tensor<8x8xf32>
    %9 = linalg.matmul ins(%arg3, %transposed_1 : tensor<8x32xf16>, tensor<32x8xf16>) outs(%8 : tensor<8x8xf32>) -> tensor<8x8xf32>
    %10 = tensor.empty() : tensor<8x8xf16>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<8x8xf32>) outs(%10 : tensor<8x8xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<8x8xf16>
    %transposed_2 = linalg.transpose ins(%arg2 : tensor<48x8xf16>) outs(%4 : tensor<8x48xf16>) permutation = [1, 0] 
    %12 = linalg.matmul ins(%11, %transposed_2 : tensor<8x8xf16>, tensor<8x48xf16>) outs(%2 : tensor<8x48xf32>) -> tensor<8x48xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<8x48xf32>) outs(%4 : tensor<8x48xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<8x48xf16>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<8x48xf16>) outs(%4 : tensor<8x48xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = arith.mulf %in, %cst_0 : f16
      linalg.yield %16 : f16
    } -> tensor<8x48xf16>
    %15 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %14 : tensor<8x48xf16>, tensor<8x48xf16>) outs(%4 : tensor<8x48xf16>) {
    ^bb0(%in: f16, %in_3: f16, %out: f16):
      %16 = arith.addf %in, %in_3 : f16
      linalg.yield %16 : f16
    } -> tensor<8x48xf16>
    return %15 : tensor<8x48xf16>
  }
}
