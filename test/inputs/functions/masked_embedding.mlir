#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map3 = affine_map<(d0, d1, d2) -> ()>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @masked_embedding(%arg0: tensor<2x8xi64>, %arg1: tensor<2x8xi1>, %arg2: tensor<10x16xf16>, %arg3: tensor<16x24xf16>) -> (tensor<2x8x24xf16>, tensor<2xi1>, tensor<2xi64>) {
    %c10 = arith.constant 10 : index
    %c0_i64 = arith.constant 0 : i64
    %true = arith.constant true
    %cst = arith.constant 0.000000e+00 : f32
    %false = arith.constant false
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<f16>
    %0 = tensor.empty() : tensor<2x8x16xf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x8xi64>) outs(%0 : tensor<2x8x16xf16>) {
    ^bb0(%in: i64, %out: f16):
      %18 = arith.index_cast %in : i64 to index
      %19 = linalg.index 2 : index
      %20 = arith.cmpi slt, %18, %c10 : index
      cf.assert %20, "index must be smaller than dim size"
      %21 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %21, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg2[%18, %19] : tensor<10x16xf16>
      linalg.yield %extracted : f16
    } -> tensor<2x8x16xf16>
    %expanded = tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [2, 8, 1] : tensor<2x8xi1> into tensor<2x8x1xi1>
    %2 = tensor.empty() : tensor<2x8x1xi1>
    %3 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x8x1xi1>) outs(%2 : tensor<2x8x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %18 = arith.xori %in, %true : i1
      linalg.yield %18 : i1
    } -> tensor<2x8x1xi1>
    %4 = linalg.generic {indexing_maps = [#map2, #map3, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %cst_0, %1 : tensor<2x8x1xi1>, tensor<f16>, tensor<2x8x16xf16>) outs(%0 : tensor<2x8x16xf16>) {
    ^bb0(%in: i1, %in_2: f16, %in_3: f16, %out: f16):
      %18 = arith.select %in, %in_2, %in_3 : f16
      linalg.yield %18 : f16
    } -> tensor<2x8x16xf16>
    %collapsed = tensor.collapse_shape %4 [[0, 1], [2]] : tensor<2x8x16xf16> into tensor<16x16xf16>
    %5 = tensor.empty() : tensor<16x24xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<16x24xf32>) -> tensor<16x24xf32>
    %7 = linalg.matmul ins(%collapsed, %arg3 : tensor<16x16xf16>, tensor<16x24xf16>) outs(%6 : tensor<16x24xf32>) -> tensor<16x24xf32>
    %8 = tensor.empty() : tensor<16x24xf16>
    %9 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<16x24xf32>) outs(%8 : tensor<16x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %18 = arith.truncf %in : f32 to f16
      linalg.yield %18 : f16
    } -> tensor<16x24xf16>
    %expanded_1 = tensor.expand_shape %9 [[0, 1], [2]] output_shape [2, 8, 24] : tensor<16x24xf16> into tensor<2x8x24xf16>
    %10 = tensor.empty() : tensor<2x8x24xf16>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_1 : tensor<2x8x24xf16>) outs(%10 : tensor<2x8x24xf16>) {
    ^bb0(%in: f16, %out: f16):
      %18 = math.tanh %in : f16
      linalg.yield %18 : f16
    } -> tensor<2x8x24xf16>
    %12 = tensor.empty() : tensor<2xi1>
    %13 = linalg.fill ins(%false : i1) outs(%12 : tensor<2xi1>) -> tensor<2xi1>
    %14 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "reduction"]} ins(%arg1 : tensor<2x8xi1>) outs(%13 : tensor<2xi1>) {
    ^bb0(%in: i1, %out: i1):
      %18 = arith.ori %in, %out : i1
      linalg.yield %18 : i1
    } -> tensor<2xi1>
    %15 = tensor.empty() : tensor<2xi64>
    %16 = linalg.fill ins(%c0_i64 : i64) outs(%15 : tensor<2xi64>) -> tensor<2xi64>
    %17 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<2x8xi64>) outs(%16 : tensor<2xi64>) {
    ^bb0(%in: i64, %out: i64):
      %18 = arith.addi %in, %out : i64
      linalg.yield %18 : i64
    } -> tensor<2xi64>
    return %11, %14, %17 : tensor<2x8x24xf16>, tensor<2xi1>, tensor<2xi64>
  }
}
