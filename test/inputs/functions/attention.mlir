#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<2x16x64xf16>, %arg1: tensor<64x64xf16>, %arg2: tensor<64x64xf16>, %arg3: tensor<64x64xf16>, %arg4: tensor<64x64xf16>) -> tensor<2x16x64xf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 2.500000e-01 : f16
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
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<2x16x64xf16>
    %expanded = tensor.expand_shape %7 [[0], [1], [2, 3]] output_shape [2, 16, 4, 16] : tensor<2x16x64xf16> into tensor<2x16x4x16xf16>
    %8 = tensor.empty() : tensor<2x4x16x16xf16>
    %transposed_2 = linalg.transpose ins(%expanded : tensor<2x16x4x16xf16>) outs(%8 : tensor<2x4x16x16xf16>) permutation = [0, 2, 1, 3] 
    %transposed_3 = linalg.transpose ins(%arg2 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %9 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_3 : tensor<64x64xf16>) outs(%1 : tensor<2x64x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x64xf16>
    %10 = linalg.batch_matmul ins(%arg0, %9 : tensor<2x16x64xf16>, tensor<2x64x64xf16>) outs(%4 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x16x64xf32>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<2x16x64xf16>
    %expanded_4 = tensor.expand_shape %11 [[0], [1], [2, 3]] output_shape [2, 16, 4, 16] : tensor<2x16x64xf16> into tensor<2x16x4x16xf16>
    %transposed_5 = linalg.transpose ins(%arg3 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_5 : tensor<64x64xf16>) outs(%1 : tensor<2x64x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x64xf16>
    %13 = linalg.batch_matmul ins(%arg0, %12 : tensor<2x16x64xf16>, tensor<2x64x64xf16>) outs(%4 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<2x16x64xf32>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<2x16x64xf16>
    %expanded_6 = tensor.expand_shape %14 [[0], [1], [2, 3]] output_shape [2, 16, 4, 16] : tensor<2x16x64xf16> into tensor<2x16x4x16xf16>
    %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<2x16x4x16xf16>) outs(%8 : tensor<2x4x16x16xf16>) permutation = [0, 2, 1, 3] 
    %transposed_8 = linalg.transpose ins(%expanded_4 : tensor<2x16x4x16xf16>) outs(%8 : tensor<2x4x16x16xf16>) permutation = [0, 2, 3, 1] 
    %collapsed = tensor.collapse_shape %transposed_2 [[0, 1], [2], [3]] : tensor<2x4x16x16xf16> into tensor<8x16x16xf16>
    %collapsed_9 = tensor.collapse_shape %transposed_8 [[0, 1], [2], [3]] : tensor<2x4x16x16xf16> into tensor<8x16x16xf16>
    %15 = tensor.empty() : tensor<8x16x16xf32>
    %16 = linalg.fill ins(%cst : f32) outs(%15 : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
    %17 = linalg.batch_matmul ins(%collapsed, %collapsed_9 : tensor<8x16x16xf16>, tensor<8x16x16xf16>) outs(%16 : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
    %18 = tensor.empty() : tensor<8x16x16xf16>
    %19 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<8x16x16xf32>) outs(%18 : tensor<8x16x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<8x16x16xf16>
    %expanded_10 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [2, 4, 16, 16] : tensor<8x16x16xf16> into tensor<2x4x16x16xf16>
    %20 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x4x16x16xf16>) outs(%8 : tensor<2x4x16x16xf16>) {
    ^bb0(%in: f16, %out: f16):
      %41 = arith.mulf %in, %cst_1 : f16
      linalg.yield %41 : f16
    } -> tensor<2x4x16x16xf16>
    %21 = tensor.empty() : tensor<2x4x16x16xf32>
    %22 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20 : tensor<2x4x16x16xf16>) outs(%21 : tensor<2x4x16x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %41 = arith.extf %in : f16 to f32
      linalg.yield %41 : f32
    } -> tensor<2x4x16x16xf32>
    %23 = tensor.empty() : tensor<2x4x16xi64>
    %24 = linalg.fill ins(%c0_i64 : i64) outs(%23 : tensor<2x4x16xi64>) -> tensor<2x4x16xi64>
    %25 = tensor.empty() : tensor<2x4x16xf32>
    %26 = linalg.fill ins(%cst_0 : f32) outs(%25 : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %27:2 = linalg.generic {indexing_maps = [#map2, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%22 : tensor<2x4x16x16xf32>) outs(%26, %24 : tensor<2x4x16xf32>, tensor<2x4x16xi64>) {
    ^bb0(%in: f32, %out: f32, %out_18: i64):
      %41 = linalg.index 3 : index
      %42 = arith.index_cast %41 : index to i64
      %43 = arith.maximumf %in, %out : f32
      %44 = arith.cmpf ogt, %in, %out : f32
      %45 = arith.select %44, %42, %out_18 : i64
      linalg.yield %43, %45 : f32, i64
    } -> (tensor<2x4x16xf32>, tensor<2x4x16xi64>)
    %expanded_11 = tensor.expand_shape %27#0 [[0], [1], [2, 3]] output_shape [2, 4, 16, 1] : tensor<2x4x16xf32> into tensor<2x4x16x1xf32>
    %28 = linalg.generic {indexing_maps = [#map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %expanded_11 : tensor<2x4x16x16xf32>, tensor<2x4x16x1xf32>) outs(%21 : tensor<2x4x16x16xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %41 = arith.subf %in, %in_18 : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x16x16xf32>
    %29 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<2x4x16x16xf32>) outs(%21 : tensor<2x4x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %41 = math.exp %in : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x16x16xf32>
    %30 = tensor.empty() : tensor<2x4x16x1xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<2x4x16x1xf32>) -> tensor<2x4x16x1xf32>
    %32 = linalg.generic {indexing_maps = [#map2, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<2x4x16x16xf32>) outs(%31 : tensor<2x4x16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %41 = arith.addf %in, %out : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x16x1xf32>
    %33 = linalg.generic {indexing_maps = [#map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %32 : tensor<2x4x16x16xf32>, tensor<2x4x16x1xf32>) outs(%21 : tensor<2x4x16x16xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %41 = arith.divf %in, %in_18 : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x16x16xf32>
    %34 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33 : tensor<2x4x16x16xf32>) outs(%8 : tensor<2x4x16x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<2x4x16x16xf16>
    %collapsed_12 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<2x4x16x16xf16> into tensor<8x16x16xf16>
    %collapsed_13 = tensor.collapse_shape %transposed_7 [[0, 1], [2], [3]] : tensor<2x4x16x16xf16> into tensor<8x16x16xf16>
    %35 = linalg.batch_matmul ins(%collapsed_12, %collapsed_13 : tensor<8x16x16xf16>, tensor<8x16x16xf16>) outs(%16 : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
    %36 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%35 : tensor<8x16x16xf32>) outs(%18 : tensor<8x16x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<8x16x16xf16>
    %expanded_14 = tensor.expand_shape %36 [[0, 1], [2], [3]] output_shape [2, 4, 16, 16] : tensor<8x16x16xf16> into tensor<2x4x16x16xf16>
    %37 = tensor.empty() : tensor<2x16x4x16xf16>
    %transposed_15 = linalg.transpose ins(%expanded_14 : tensor<2x4x16x16xf16>) outs(%37 : tensor<2x16x4x16xf16>) permutation = [0, 2, 1, 3] 
    %collapsed_16 = tensor.collapse_shape %transposed_15 [[0], [1], [2, 3]] : tensor<2x16x4x16xf16> into tensor<2x16x64xf16>
    %transposed_17 = linalg.transpose ins(%arg4 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %38 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_17 : tensor<64x64xf16>) outs(%1 : tensor<2x64x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x64x64xf16>
    %39 = linalg.batch_matmul ins(%collapsed_16, %38 : tensor<2x16x64xf16>, tensor<2x64x64xf16>) outs(%4 : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %40 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%39 : tensor<2x16x64xf32>) outs(%6 : tensor<2x16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %41 = arith.truncf %in : f32 to f16
      linalg.yield %41 : f16
    } -> tensor<2x16x64xf16>
    return %40 : tensor<2x16x64xf16>
  }
}
