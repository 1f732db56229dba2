#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @relu_mlp_f16(%arg0: tensor<64x64xf16>, %arg1: tensor<64xf16>, %arg2: tensor<64x64xf16>, %arg3: tensor<64xf16>, %arg4: tensor<8x64xf16>) -> tensor<8x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %0 = tensor.empty() : tensor<64x64xf16>
    %transposed = linalg.transpose ins(%arg0 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<64xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg1 : tensor<64xf16>) outs(%1 : tensor<64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<64xf32>
    %3 = tensor.empty() : tensor<8x64xf32>
    %4 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%arg4 : tensor<8x64xf16>) outs(%3 : tensor<8x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<8x64xf32>
    %5 = tensor.empty() : tensor<64x64xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%transposed : tensor<64x64xf16>) outs(%5 : tensor<64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<64x64xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%3 : tensor<8x64xf32>) -> tensor<8x64xf32>
    %8 = linalg.matmul ins(%4, %6 : tensor<8x64xf32>, tensor<64x64xf32>) outs(%7 : tensor<8x64xf32>) -> tensor<8x64xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%8, %2 : tensor<8x64xf32>, tensor<64xf32>) outs(%3 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.addf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<8x64xf32>
    %10 = tensor.empty() : tensor<8x64xf16>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<8x64xf32>) outs(%10 : tensor<8x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<8x64xf16>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<8x64xf16>) outs(%10 : tensor<8x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      %19 = arith.cmpf ugt, %in, %cst_0 : f16
      %20 = arith.select %19, %in, %cst_0 : f16
      linalg.yield %20 : f16
    } -> tensor<8x64xf16>
    %transposed_1 = linalg.transpose ins(%arg2 : tensor<64x64xf16>) outs(%0 : tensor<64x64xf16>) permutation = [1, 0] 
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg3 : tensor<64xf16>) outs(%1 : tensor<64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<64xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<8x64xf16>) outs(%3 : tensor<8x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<8x64xf32>
    %15 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%transposed_1 : tensor<64x64xf16>) outs(%5 : tensor<64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<64x64xf32>
    %16 = linalg.matmul ins(%14, %15 : tensor<8x64xf32>, tensor<64x64xf32>) outs(%7 : tensor<8x64xf32>) -> tensor<8x64xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%16, %13 : tensor<8x64xf32>, tensor<64xf32>) outs(%3 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.addf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<8x64xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%17 : tensor<8x64xf32>) outs(%10 : tensor<8x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<8x64xf16>
    return %18 : tensor<8x64xf16>
  }
}
