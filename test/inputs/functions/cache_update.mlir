// Keys that are written to a cache at given places, and scores with all of it.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> ()>
#map5 = affine_map<(d0, d1) -> (d0)>
#map6 = affine_map<(d0, d1, d2) -> (d1)>
#map7 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2) -> (d1, 0)>
module {
  func.func @cache_update(%arg0: tensor<2x8x16xf16>, %arg1: tensor<2xi64>, %arg2: tensor<2x2x16xf16>, %arg3: tensor<16x16xf16>) -> (tensor<2x8x16xf16>, tensor<2x8x2xf16>) {
    %c8_i64 = arith.constant 8 : i64
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %c-9223372036854775808_i64 = arith.constant -9223372036854775808 : i64
    %cst_0 = arith.constant dense<-1> : tensor<i64>
    %collapsed = tensor.collapse_shape %arg2 [[0, 1], [2]] : tensor<2x2x16xf16> into tensor<4x16xf16>
    %0 = tensor.empty() : tensor<4x16xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = linalg.matmul ins(%collapsed, %arg3 : tensor<4x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = tensor.empty() : tensor<4x16xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x16xf32>) outs(%3 : tensor<4x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %29 = arith.truncf %in : f32 to f16
      linalg.yield %29 : f16
    } -> tensor<4x16xf16>
    %expanded = tensor.expand_shape %4 [[0, 1], [2]] output_shape [2, 2, 16] : tensor<4x16xf16> into tensor<2x2x16xf16>
    %5 = tensor.empty() : tensor<8xi64>
    %6 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%5 : tensor<8xi64>) {
    ^bb0(%out: i64):
      %29 = linalg.index 0 : index
      %30 = arith.index_cast %29 : index to i64
      linalg.yield %30 : i64
    } -> tensor<8xi64>
    %7 = tensor.empty() : tensor<2xi64>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg1 : tensor<2xi64>) outs(%7 : tensor<2xi64>) {
    ^bb0(%in: i64, %out: i64):
      %29 = arith.cmpi slt, %in, %c0_i64 : i64
      %30 = arith.addi %in, %c8_i64 : i64
      %31 = arith.select %29, %30, %in : i64
      %32 = arith.index_cast %31 : i64 to index
      %extracted = tensor.extract %6[%32] : tensor<8xi64>
      linalg.yield %extracted : i64
    } -> tensor<2xi64>
    %expanded_1 = tensor.expand_shape %6 [[0, 1]] output_shape [8, 1] : tensor<8xi64> into tensor<8x1xi64>
    %9 = tensor.empty() : tensor<8x2xi1>
    %10 = linalg.generic {indexing_maps = [#map2, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%8, %expanded_1 : tensor<2xi64>, tensor<8x1xi64>) outs(%9 : tensor<8x2xi1>) {
    ^bb0(%in: i64, %in_3: i64, %out: i1):
      %29 = arith.cmpi eq, %in, %in_3 : i64
      linalg.yield %29 : i1
    } -> tensor<8x2xi1>
    %11 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%7 : tensor<2xi64>) {
    ^bb0(%out: i64):
      %29 = linalg.index 0 : index
      %30 = arith.index_cast %29 : index to i64
      linalg.yield %30 : i64
    } -> tensor<2xi64>
    %12 = tensor.empty() : tensor<8x2xi64>
    %13 = linalg.generic {indexing_maps = [#map, #map2, #map4, #map], iterator_types = ["parallel", "parallel"]} ins(%10, %11, %cst_0 : tensor<8x2xi1>, tensor<2xi64>, tensor<i64>) outs(%12 : tensor<8x2xi64>) {
    ^bb0(%in: i1, %in_3: i64, %in_4: i64, %out: i64):
      %29 = arith.select %in, %in_3, %in_4 : i64
      linalg.yield %29 : i64
    } -> tensor<8x2xi64>
    %14 = linalg.fill ins(%c0_i64 : i64) outs(%5 : tensor<8xi64>) -> tensor<8xi64>
    %15 = linalg.fill ins(%c-9223372036854775808_i64 : i64) outs(%5 : tensor<8xi64>) -> tensor<8xi64>
    %16:2 = linalg.generic {indexing_maps = [#map, #map5, #map5], iterator_types = ["parallel", "reduction"]} ins(%13 : tensor<8x2xi64>) outs(%15, %14 : tensor<8xi64>, tensor<8xi64>) {
    ^bb0(%in: i64, %out: i64, %out_3: i64):
      %29 = linalg.index 1 : index
      %30 = arith.index_cast %29 : index to i64
      %31 = arith.maxsi %in, %out : i64
      %32 = arith.cmpi sgt, %in, %out : i64
      %33 = arith.select %32, %30, %out_3 : i64
      linalg.yield %31, %33 : i64, i64
    } -> (tensor<8xi64>, tensor<8xi64>)
    %17 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%16#0 : tensor<8xi64>) outs(%5 : tensor<8xi64>) {
    ^bb0(%in: i64, %out: i64):
      %29 = arith.maxsi %in, %c0_i64 : i64
      linalg.yield %29 : i64
    } -> tensor<8xi64>
    %18 = tensor.empty() : tensor<2x8x16xf16>
    %19 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<8xi64>) outs(%18 : tensor<2x8x16xf16>) {
    ^bb0(%in: i64, %out: f16):
      %29 = arith.index_cast %in : i64 to index
      %30 = linalg.index 0 : index
      %31 = linalg.index 2 : index
      %extracted = tensor.extract %expanded[%30, %29, %31] : tensor<2x2x16xf16>
      linalg.yield %extracted : f16
    } -> tensor<2x8x16xf16>
    %20 = tensor.empty() : tensor<8xi1>
    %21 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%16#0 : tensor<8xi64>) outs(%20 : tensor<8xi1>) {
    ^bb0(%in: i64, %out: i1):
      %29 = arith.cmpi sge, %in, %c0_i64 : i64
      linalg.yield %29 : i1
    } -> tensor<8xi1>
    %expanded_2 = tensor.expand_shape %21 [[0, 1]] output_shape [8, 1] : tensor<8xi1> into tensor<8x1xi1>
    %22 = linalg.generic {indexing_maps = [#map8, #map7, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_2, %19, %arg0 : tensor<8x1xi1>, tensor<2x8x16xf16>, tensor<2x8x16xf16>) outs(%18 : tensor<2x8x16xf16>) {
    ^bb0(%in: i1, %in_3: f16, %in_4: f16, %out: f16):
      %29 = arith.select %in, %in_3, %in_4 : f16
      linalg.yield %29 : f16
    } -> tensor<2x8x16xf16>
    %23 = tensor.empty() : tensor<2x16x2xf16>
    %transposed = linalg.transpose ins(%arg2 : tensor<2x2x16xf16>) outs(%23 : tensor<2x16x2xf16>) permutation = [0, 2, 1] 
    %24 = tensor.empty() : tensor<2x8x2xf32>
    %25 = linalg.fill ins(%cst : f32) outs(%24 : tensor<2x8x2xf32>) -> tensor<2x8x2xf32>
    %26 = linalg.batch_matmul ins(%22, %transposed : tensor<2x8x16xf16>, tensor<2x16x2xf16>) outs(%25 : tensor<2x8x2xf32>) -> tensor<2x8x2xf32>
    %27 = tensor.empty() : tensor<2x8x2xf16>
    %28 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26 : tensor<2x8x2xf32>) outs(%27 : tensor<2x8x2xf16>) {
    ^bb0(%in: f32, %out: f16):
      %29 = arith.truncf %in : f32 to f16
      linalg.yield %29 : f16
    } -> tensor<2x8x2xf16>
    return %22, %28 : tensor<2x8x16xf16>, tensor<2x8x2xf16>
  }
}
