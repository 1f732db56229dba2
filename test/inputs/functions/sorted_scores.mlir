// Scores of each row in descending order, with their places.
#map = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d1)>
#map5 = affine_map<(d0, d1) -> (d0, 0)>
#map6 = affine_map<(d0, d1) -> (d0, d1)>
#map7 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map8 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map9 = affine_map<(d0, d1, d2) -> (d1, 0)>
#map10 = affine_map<(d0, d1, d2) -> (d2)>
#map11 = affine_map<(d0, d1, d2) -> ()>
module {
  func.func @sorted_scores(%arg0: tensor<6x16xf32>, %arg1: tensor<16x12xf32>) -> (tensor<6x12xf32>, tensor<6x12xi64>) {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %c12 = arith.constant 12 : index
    %true = arith.constant true
    %cst_0 = arith.constant dense<0> : tensor<i64>
    %0 = tensor.empty() : tensor<6x12xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<6x12xf32>) -> tensor<6x12xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<6x16xf32>, tensor<16x12xf32>) outs(%1 : tensor<6x12xf32>) -> tensor<6x12xf32>
    %expanded = tensor.expand_shape %2 [[0], [1, 2]] output_shape [6, 12, 1] : tensor<6x12xf32> into tensor<6x12x1xf32>
    %expanded_1 = tensor.expand_shape %2 [[0], [1, 2]] output_shape [6, 1, 12] : tensor<6x12xf32> into tensor<6x1x12xf32>
    %3 = tensor.empty() : tensor<6x12x12xi1>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_1, %expanded : tensor<6x1x12xf32>, tensor<6x12x1xf32>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %29 = arith.cmpf ogt, %in, %in_4 : f32
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_1, %expanded : tensor<6x1x12xf32>, tensor<6x12x1xf32>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %29 = arith.cmpf oeq, %in, %in_4 : f32
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %6 = tensor.empty() : tensor<6x12x1xi1>
    %7 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded, %expanded : tensor<6x12x1xf32>, tensor<6x12x1xf32>) outs(%6 : tensor<6x12x1xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %29 = arith.cmpf une, %in, %in_4 : f32
      linalg.yield %29 : i1
    } -> tensor<6x12x1xi1>
    %8 = tensor.empty() : tensor<6x1x12xi1>
    %9 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_1, %expanded_1 : tensor<6x1x12xf32>, tensor<6x1x12xf32>) outs(%8 : tensor<6x1x12xi1>) {
    ^bb0(%in: f32, %in_4: f32, %out: i1):
      %29 = arith.cmpf une, %in, %in_4 : f32
      linalg.yield %29 : i1
    } -> tensor<6x1x12xi1>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<6x12x1xi1>) outs(%6 : tensor<6x12x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %29 = arith.xori %in, %true : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x1xi1>
    %11 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9, %10 : tensor<6x1x12xi1>, tensor<6x12x1xi1>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i1, %in_4: i1, %out: i1):
      %29 = arith.andi %in, %in_4 : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %12 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4, %11 : tensor<6x12x12xi1>, tensor<6x12x12xi1>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i1, %in_4: i1, %out: i1):
      %29 = arith.ori %in, %in_4 : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %13 = linalg.generic {indexing_maps = [#map1, #map, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %9 : tensor<6x12x1xi1>, tensor<6x1x12xi1>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i1, %in_4: i1, %out: i1):
      %29 = arith.andi %in, %in_4 : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %14 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %13 : tensor<6x12x12xi1>, tensor<6x12x12xi1>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i1, %in_4: i1, %out: i1):
      %29 = arith.ori %in, %in_4 : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %15 = tensor.empty() : tensor<12xi64>
    %16 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%15 : tensor<12xi64>) {
    ^bb0(%out: i64):
      %29 = linalg.index 0 : index
      %30 = arith.index_cast %29 : index to i64
      linalg.yield %30 : i64
    } -> tensor<12xi64>
    %expanded_2 = tensor.expand_shape %16 [[0, 1]] output_shape [12, 1] : tensor<12xi64> into tensor<12x1xi64>
    %17 = tensor.empty() : tensor<12x12xi1>
    %18 = linalg.generic {indexing_maps = [#map4, #map5, #map6], iterator_types = ["parallel", "parallel"]} ins(%16, %expanded_2 : tensor<12xi64>, tensor<12x1xi64>) outs(%17 : tensor<12x12xi1>) {
    ^bb0(%in: i64, %in_4: i64, %out: i1):
      %29 = arith.cmpi slt, %in, %in_4 : i64
      linalg.yield %29 : i1
    } -> tensor<12x12xi1>
    %19 = linalg.generic {indexing_maps = [#map2, #map7, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %18 : tensor<6x12x12xi1>, tensor<12x12xi1>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i1, %in_4: i1, %out: i1):
      %29 = arith.andi %in, %in_4 : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %20 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12, %19 : tensor<6x12x12xi1>, tensor<6x12x12xi1>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i1, %in_4: i1, %out: i1):
      %29 = arith.ori %in, %in_4 : i1
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %21 = tensor.empty() : tensor<6x12xi64>
    %22 = linalg.fill ins(%c0_i64 : i64) outs(%21 : tensor<6x12xi64>) -> tensor<6x12xi64>
    %23 = linalg.generic {indexing_maps = [#map2, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%20 : tensor<6x12x12xi1>) outs(%22 : tensor<6x12xi64>) {
    ^bb0(%in: i1, %out: i64):
      %29 = arith.extui %in : i1 to i64
      %30 = arith.addi %29, %out : i64
      linalg.yield %30 : i64
    } -> tensor<6x12xi64>
    %expanded_3 = tensor.expand_shape %23 [[0], [1, 2]] output_shape [6, 1, 12] : tensor<6x12xi64> into tensor<6x1x12xi64>
    %24 = linalg.generic {indexing_maps = [#map, #map9, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_3, %expanded_2 : tensor<6x1x12xi64>, tensor<12x1xi64>) outs(%3 : tensor<6x12x12xi1>) {
    ^bb0(%in: i64, %in_4: i64, %out: i1):
      %29 = arith.cmpi eq, %in, %in_4 : i64
      linalg.yield %29 : i1
    } -> tensor<6x12x12xi1>
    %25 = tensor.empty() : tensor<6x12x12xi64>
    %26 = linalg.generic {indexing_maps = [#map2, #map10, #map11, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %16, %cst_0 : tensor<6x12x12xi1>, tensor<12xi64>, tensor<i64>) outs(%25 : tensor<6x12x12xi64>) {
    ^bb0(%in: i1, %in_4: i64, %in_5: i64, %out: i64):
      %29 = arith.select %in, %in_4, %in_5 : i64
      linalg.yield %29 : i64
    } -> tensor<6x12x12xi64>
    %27 = linalg.generic {indexing_maps = [#map2, #map8], iterator_types = ["parallel", "parallel", "reduction"]} ins(%26 : tensor<6x12x12xi64>) outs(%22 : tensor<6x12xi64>) {
    ^bb0(%in: i64, %out: i64):
      %29 = arith.addi %in, %out : i64
      linalg.yield %29 : i64
    } -> tensor<6x12xi64>
    %28 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<6x12xi64>) outs(%1 : tensor<6x12xf32>) {
    ^bb0(%in: i64, %out: f32):
      %29 = linalg.index 0 : index
      %30 = arith.index_cast %in : i64 to index
      %31 = arith.cmpi slt, %30, %c12 : index
      cf.assert %31, "index must be smaller than dim size"
      %32 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %32, "index must be larger or equal to 0"
      %extracted = tensor.extract %2[%29, %30] : tensor<6x12xf32>
      linalg.yield %extracted : f32
    } -> tensor<6x12xf32>
    return %28, %27 : tensor<6x12xf32>, tensor<6x12xi64>
  }
}
