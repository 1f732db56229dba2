#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
module {
  func.func @masked_sdpa(%arg0: tensor<2x8x16xf16>, %arg1: tensor<2x8x16xf16>, %arg2: tensor<2x8x16xf16>, %arg3: tensor<8x8xi1>) -> tensor<2x8x16xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x8x8xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant dense<0xFC00> : tensor<f16>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<f16>
    %cst_5 = arith.constant 5.000000e-01 : f32
    %0 = tensor.empty() : tensor<8x8xf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3, %cst_4, %cst_3 : tensor<8x8xi1>, tensor<f16>, tensor<f16>) outs(%0 : tensor<8x8xf16>) {
    ^bb0(%in: i1, %in_6: f16, %in_7: f16, %out: f16):
      %34 = arith.select %in, %in_6, %in_7 : f16
      linalg.yield %34 : f16
    } -> tensor<8x8xf16>
    %2 = tensor.empty() : tensor<2x8x16xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x8x16xf16>) outs(%2 : tensor<2x8x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %34 = arith.extf %in : f16 to f32
      linalg.yield %34 : f32
    } -> tensor<2x8x16xf32>
    %4 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x8x16xf16>) outs(%2 : tensor<2x8x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %34 = arith.extf %in : f16 to f32
      linalg.yield %34 : f32
    } -> tensor<2x8x16xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x8x16xf16>) outs(%2 : tensor<2x8x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %34 = arith.extf %in : f16 to f32
      linalg.yield %34 : f32
    } -> tensor<2x8x16xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x8x16xf32>) outs(%2 : tensor<2x8x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.mulf %in, %cst_5 : f32
      linalg.yield %34 : f32
    } -> tensor<2x8x16xf32>
    %7 = tensor.empty() : tensor<2x16x8xf32>
    %transposed = linalg.transpose ins(%4 : tensor<2x8x16xf32>) outs(%7 : tensor<2x16x8xf32>) permutation = [0, 2, 1] 
    %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x16x8xf32>) outs(%7 : tensor<2x16x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.mulf %in, %cst_5 : f32
      linalg.yield %34 : f32
    } -> tensor<2x16x8xf32>
    %9 = tensor.empty() : tensor<2x8x8xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %11 = linalg.batch_matmul ins(%6, %8 : tensor<2x8x16xf32>, tensor<2x16x8xf32>) outs(%10 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %12 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11, %1 : tensor<2x8x8xf32>, tensor<8x8xf16>) outs(%9 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %in_6: f16, %out: f32):
      %34 = arith.extf %in_6 : f16 to f32
      %35 = arith.addf %in, %34 : f32
      linalg.yield %35 : f32
    } -> tensor<2x8x8xf32>
    %13 = tensor.empty() : tensor<2x8xi64>
    %14 = linalg.fill ins(%c0_i64 : i64) outs(%13 : tensor<2x8xi64>) -> tensor<2x8xi64>
    %15 = tensor.empty() : tensor<2x8xf32>
    %16 = linalg.fill ins(%cst_0 : f32) outs(%15 : tensor<2x8xf32>) -> tensor<2x8xf32>
    %17:2 = linalg.generic {indexing_maps = [#map2, #map4, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%12 : tensor<2x8x8xf32>) outs(%16, %14 : tensor<2x8xf32>, tensor<2x8xi64>) {
    ^bb0(%in: f32, %out: f32, %out_6: i64):
      %34 = linalg.index 2 : index
      %35 = arith.index_cast %34 : index to i64
      %36 = arith.maximumf %in, %out : f32
      %37 = arith.cmpf ogt, %in, %out : f32
      %38 = arith.select %37, %35, %out_6 : i64
      linalg.yield %36, %38 : f32, i64
    } -> (tensor<2x8xf32>, tensor<2x8xi64>)
    %expanded = tensor.expand_shape %17#0 [[0], [1, 2]] output_shape [2, 8, 1] : tensor<2x8xf32> into tensor<2x8x1xf32>
    %18 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12, %expanded : tensor<2x8x8xf32>, tensor<2x8x1xf32>) outs(%9 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %34 = arith.subf %in, %in_6 : f32
      linalg.yield %34 : f32
    } -> tensor<2x8x8xf32>
    %19 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<2x8x8xf32>) outs(%9 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = math.exp %in : f32
      linalg.yield %34 : f32
    } -> tensor<2x8x8xf32>
    %20 = tensor.empty() : tensor<2x8x1xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
    %22 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%19 : tensor<2x8x8xf32>) outs(%21 : tensor<2x8x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.addf %in, %out : f32
      linalg.yield %34 : f32
    } -> tensor<2x8x1xf32>
    %23 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19, %22 : tensor<2x8x8xf32>, tensor<2x8x1xf32>) outs(%9 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %34 = arith.divf %in, %in_6 : f32
      linalg.yield %34 : f32
    } -> tensor<2x8x8xf32>
    %24 = tensor.empty() : tensor<2x8x8xi1>
    %25 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<2x8x8xf32>) outs(%24 : tensor<2x8x8xi1>) {
    ^bb0(%in: f32, %out: i1):
      %34 = arith.extf %in : f32 to f64
      %35 = arith.cmpf oeq, %34, %cst_2 : f64
      linalg.yield %35 : i1
    } -> tensor<2x8x8xi1>
    %26 = tensor.empty() : tensor<2x8x1xi1>
    %27 = linalg.fill ins(%true : i1) outs(%26 : tensor<2x8x1xi1>) -> tensor<2x8x1xi1>
    %28 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%25 : tensor<2x8x8xi1>) outs(%27 : tensor<2x8x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %34 = arith.andi %in, %out : i1
      linalg.yield %34 : i1
    } -> tensor<2x8x1xi1>
    %29 = linalg.generic {indexing_maps = [#map5, #map2, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%28, %cst_1, %23 : tensor<2x8x1xi1>, tensor<2x8x8xf32>, tensor<2x8x8xf32>) outs(%9 : tensor<2x8x8xf32>) {
    ^bb0(%in: i1, %in_6: f32, %in_7: f32, %out: f32):
      %34 = arith.select %in, %in_6, %in_7 : f32
      linalg.yield %34 : f32
    } -> tensor<2x8x8xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %31 = linalg.batch_matmul ins(%29, %5 : tensor<2x8x8xf32>, tensor<2x8x16xf32>) outs(%30 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %32 = tensor.empty() : tensor<2x8x16xf16>
    %33 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%31 : tensor<2x8x16xf32>) outs(%32 : tensor<2x8x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %34 = arith.truncf %in : f32 to f16
      linalg.yield %34 : f16
    } -> tensor<2x8x16xf16>
    return %33 : tensor<2x8x16xf16>
  }
}
