#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
module {
  func.func @projections(%arg0: tensor<2x16x64xf16>, %arg1: tensor<64x64xf16>, %arg2: tensor<64xf16>, %arg3: tensor<64x64xf16>, %arg4: tensor<64xf16>, %arg5: tensor<64x64xf16>, %arg6: tensor<64xf16>) -> (tensor<2x4x16x16xf16>, tensor<2x4x16x16xf16>, tensor<2x4x16x16xf16>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<64x64xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2x64x64xf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<64x64xf16>) outs(%1 : tensor<2x64x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x64xf16>
    %3 = tensor.empty() : tensor<2x16x64xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %5 = linalg.batch_matmul ins(%arg0, %2 : tensor<2x16x64xf16>, tensor<2x64x64xf16>) outs(%4 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %6 = tensor.empty() : tensor<2x16x64xf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x16x64xf32>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %18 = arith.truncf %in : f32 to f16
      linalg.yield %18 : f16
    } -> tensor<2x16x64xf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %arg2 : tensor<2x16x64xf16>, tensor<64xf16>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_7: f16, %out: f16):
      %18 = arith.addf %in, %in_7 : f16
      linalg.yield %18 : f16
    } -> tensor<2x16x64xf16>
    %expanded = tensor.expand_shape %8 [[0], [1], [2, 3]] output_shape [2, 16, 4, 16] : tensor<2x16x64xf16> into tensor<2x16x4x16xf16>
    %9 = tensor.empty() : tensor<2x4x16x16xf16>
    %transposed_0 = linalg.transpose ins(%expanded : tensor<2x16x4x16xf16>) outs(%9 : tensor<2x4x16x16xf16>) permutation = [0, 2, 1, 3] 
    %transposed_1 = linalg.transpose ins(%arg3 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %10 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_1 : tensor<64x64xf16>) outs(%1 : tensor<2x64x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x64xf16>
    %11 = linalg.batch_matmul ins(%arg0, %10 : tensor<2x16x64xf16>, tensor<2x64x64xf16>) outs(%4 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<2x16x64xf32>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %18 = arith.truncf %in : f32 to f16
      linalg.yield %18 : f16
    } -> tensor<2x16x64xf16>
    %13 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12, %arg4 : tensor<2x16x64xf16>, tensor<64xf16>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_7: f16, %out: f16):
      %18 = arith.addf %in, %in_7 : f16
      linalg.yield %18 : f16
    } -> tensor<2x16x64xf16>
    %expanded_2 = tensor.expand_shape %13 [[0], [1], [2, 3]] output_shape [2, 16, 4, 16] : tensor<2x16x64xf16> into tensor<2x16x4x16xf16>
    %transposed_3 = linalg.transpose ins(%expanded_2 : tensor<2x16x4x16xf16>) outs(%9 : tensor<2x4x16x16xf16>) permutation = [0, 2, 1, 3] 
    %transposed_4 = linalg.transpose ins(%arg5 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %14 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_4 : tensor<64x64xf16>) outs(%1 : tensor<2x64x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x64xf16>
    %15 = linalg.batch_matmul ins(%arg0, %14 : tensor<2x16x64xf16>, tensor<2x64x64xf16>) outs(%4 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %16 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x16x64xf32>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %18 = arith.truncf %in : f32 to f16
      linalg.yield %18 : f16
    } -> tensor<2x16x64xf16>
    %17 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %arg6 : tensor<2x16x64xf16>, tensor<64xf16>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_7: f16, %out: f16):
      %18 = arith.addf %in, %in_7 : f16
      linalg.yield %18 : f16
    } -> tensor<2x16x64xf16>
    %expanded_5 = tensor.expand_shape %17 [[0], [1], [2, 3]] output_shape [2, 16, 4, 16] : tensor<2x16x64xf16> into tensor<2x16x4x16xf16>
    %transposed_6 = linalg.transpose ins(%expanded_5 : tensor<2x16x4x16xf16>) outs(%9 : tensor<2x4x16x16xf16>) permutation = [0, 2, 1, 3] 
    return %transposed_0, %transposed_3, %transposed_6 : tensor<2x4x16x16xf16>, tensor<2x4x16x16xf16>, tensor<2x4x16x16xf16>
  }
}
