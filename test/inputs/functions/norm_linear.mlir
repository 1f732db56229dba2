#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d2)>
#map4 = affine_map<(d0, d1, d2) -> (d1, d2)>
module {
  func.func @norm_linear(%arg0: tensor<2x16x64xf16>, %arg1: tensor<64xf16>, %arg2: tensor<64xf16>, %arg3: tensor<96x64xf16>, %arg4: tensor<96xf16>) -> tensor<2x16x96xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 6.400000e+01 : f16
    %0 = tensor.empty() : tensor<2x16x1xf16>
    %1 = linalg.fill ins(%cst : f16) outs(%0 : tensor<2x16x1xf16>) -> tensor<2x16x1xf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<2x16x64xf16>) outs(%1 : tensor<2x16x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.addf %in, %out : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x1xf16>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x16x1xf16>) outs(%0 : tensor<2x16x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.divf %in, %cst_2 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x1xf16>
    %4 = tensor.empty() : tensor<2x16x64xf16>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2]] : tensor<2x16x1xf16> into tensor<2x16xf16>
    %5 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x16xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x16x64xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %5 : tensor<2x16x64xf16>, tensor<2x16x64xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.subf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x64xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<2x16x64xf16>, tensor<2x16x64xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.mulf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x64xf16>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<2x16x64xf16>) outs(%1 : tensor<2x16x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.addf %in, %out : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x1xf16>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x16x1xf16>) outs(%0 : tensor<2x16x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.divf %in, %cst_2 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x1xf16>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<2x16x1xf16>) outs(%0 : tensor<2x16x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.truncf %cst_1 : f64 to f16
      %26 = arith.addf %in, %25 : f16
      linalg.yield %26 : f16
    } -> tensor<2x16x1xf16>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x16x1xf16>) outs(%0 : tensor<2x16x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = math.rsqrt %in : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x1xf16>
    %collapsed_3 = tensor.collapse_shape %11 [[0], [1, 2]] : tensor<2x16x1xf16> into tensor<2x16xf16>
    %12 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_3 : tensor<2x16xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x16x64xf16>
    %13 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %12 : tensor<2x16x64xf16>, tensor<2x16x64xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.mulf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x64xf16>
    %14 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %arg1 : tensor<2x16x64xf16>, tensor<64xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.mulf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x64xf16>
    %15 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %arg2 : tensor<2x16x64xf16>, tensor<64xf16>) outs(%4 : tensor<2x16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.addf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x64xf16>
    %16 = tensor.empty() : tensor<64x96xf16>
    %transposed = linalg.transpose ins(%arg3 : tensor<96x64xf16>) outs(%16 : tensor<64x96xf16>) permutation = [1, 0] 
    %17 = tensor.empty() : tensor<2x64x96xf16>
    %18 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<64x96xf16>) outs(%17 : tensor<2x64x96xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x96xf16>
    %19 = tensor.empty() : tensor<2x16x96xf32>
    %20 = linalg.fill ins(%cst_0 : f32) outs(%19 : tensor<2x16x96xf32>) -> tensor<2x16x96xf32>
    %21 = linalg.batch_matmul ins(%15, %18 : tensor<2x16x64xf16>, tensor<2x64x96xf16>) outs(%20 : tensor<2x16x96xf32>) -> tensor<2x16x96xf32>
    %22 = tensor.empty() : tensor<2x16x96xf16>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21 : tensor<2x16x96xf32>) outs(%22 : tensor<2x16x96xf16>) {
    ^bb0(%in: f32, %out: f16):
      %25 = arith.truncf %in : f32 to f16
      linalg.yield %25 : f16
    } -> tensor<2x16x96xf16>
    %24 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23, %arg4 : tensor<2x16x96xf16>, tensor<96xf16>) outs(%22 : tensor<2x16x96xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.addf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x16x96xf16>
    return %24 : tensor<2x16x96xf16>
  }
}
