#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @odd_sizes(%arg0: tensor<7x33xf16>, %arg1: tensor<29x33xf16>, %arg2: tensor<29xf16>, %arg3: tensor<11x29xf16>, %arg4: tensor<11xf16>) -> tensor<7x11xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %0 = tensor.empty() : tensor<33x29xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<29x33xf16>) outs(%0 : tensor<33x29xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<7x29xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<7x29xf32>) -> tensor<7x29xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<7x33xf16>, tensor<33x29xf16>) outs(%2 : tensor<7x29xf32>) -> tensor<7x29xf32>
    %4 = tensor.empty() : tensor<7x29xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<7x29xf32>) outs(%4 : tensor<7x29xf16>) {
    ^bb0(%in: f32, %out: f16):
      %15 = arith.truncf %in : f32 to f16
      linalg.yield %15 : f16
    } -> tensor<7x29xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %arg2 : tensor<7x29xf16>, tensor<29xf16>) outs(%4 : tensor<7x29xf16>) {
    ^bb0(%in: f16, %in_2: f16, %out: f16):
      %15 = arith.addf %in, %in_2 : f16
      linalg.yield %15 : f16
    } -> tensor<7x29xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<7x29xf16>) outs(%4 : tensor<7x29xf16>) {
    ^bb0(%in: f16, %out: f16):
      %15 = arith.cmpf ugt, %in, %cst_0 : f16
      %16 = arith.select %15, %in, %cst_0 : f16
      linalg.yield %16 : f16
    } -> tensor<7x29xf16>
    %8 = tensor.empty() : tensor<29x11xf16>
    %transposed_1 = linalg.transpose ins(%arg3 : tensor<11x29xf16>) outs(%8 : tensor<29x11xf16>) permutation = [1, 0] 
    %9 = tensor.empty() : tensor<7x11xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<7x11xf32>) -> tensor<7x11xf32>
    %11 = linalg.matmul ins(%7, %transposed_1 : tensor<7x29xf16>, tensor<29x11xf16>) outs(%10 : tensor<7x11xf32>) -> tensor<7x11xf32>
    %12 = tensor.empty() : tensor<7x11xf16>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<7x11xf32>) outs(%12 : tensor<7x11xf16>) {
    ^bb0(%in: f32, %out: f16):
      %15 = arith.truncf %in : f32 to f16
      linalg.yield %15 : f16
    } -> tensor<7x11xf16>
    %14 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %arg4 : tensor<7x11xf16>, tensor<11xf16>) outs(%12 : tensor<7x11xf16>) {
    ^bb0(%in: f16, %in_2: f16, %out: f16):
      %15 = arith.addf %in, %in_2 : f16
      linalg.yield %15 : f16
    } -> tensor<7x11xf16>
    return %14 : tensor<7x11xf16>
  }
}
