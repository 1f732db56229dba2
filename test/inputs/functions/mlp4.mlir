#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @mlp4(%arg0: tensor<16x64xf16>, %arg1: tensor<96x64xf16>, %arg2: tensor<96xf16>, %arg3: tensor<128x96xf16>, %arg4: tensor<128xf16>, %arg5: tensor<64x128xf16>, %arg6: tensor<64xf16>, %arg7: tensor<32x64xf16>, %arg8: tensor<32xf16>) -> tensor<16x32xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %0 = tensor.empty() : tensor<64x96xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<96x64xf16>) outs(%0 : tensor<64x96xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<16x96xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<16x96xf32>) -> tensor<16x96xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<16x64xf16>, tensor<64x96xf16>) outs(%2 : tensor<16x96xf32>) -> tensor<16x96xf32>
    %4 = tensor.empty() : tensor<16x96xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<16x96xf32>) outs(%4 : tensor<16x96xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<16x96xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %arg2 : tensor<16x96xf16>, tensor<96xf16>) outs(%4 : tensor<16x96xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %31 = arith.addf %in, %in_4 : f16
      linalg.yield %31 : f16
    } -> tensor<16x96xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<16x96xf16>) outs(%4 : tensor<16x96xf16>) {
    ^bb0(%in: f16, %out: f16):
      %31 = arith.cmpf ugt, %in, %cst_0 : f16
      %32 = arith.select %31, %in, %cst_0 : f16
      linalg.yield %32 : f16
    } -> tensor<16x96xf16>
    %8 = tensor.empty() : tensor<96x128xf16>
    %transposed_1 = linalg.transpose ins(%arg3 : tensor<128x96xf16>) outs(%8 : tensor<96x128xf16>) permutation = [1, 0] 
    %9 = tensor.empty() : tensor<16x128xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %11 = linalg.matmul ins(%7, %transposed_1 : tensor<16x96xf16>, tensor<96x128xf16>) outs(%10 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %12 = tensor.empty() : tensor<16x128xf16>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<16x128xf32>) outs(%12 : tensor<16x128xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<16x128xf16>
    %14 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %arg4 : tensor<16x128xf16>, tensor<128xf16>) outs(%12 : tensor<16x128xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %31 = arith.addf %in, %in_4 : f16
      linalg.yield %31 : f16
    } -> tensor<16x128xf16>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<16x128xf16>) outs(%12 : tensor<16x128xf16>) {
    ^bb0(%in: f16, %out: f16):
      %31 = arith.cmpf ugt, %in, %cst_0 : f16
      %32 = arith.select %31, %in, %cst_0 : f16
      linalg.yield %32 : f16
    } -> tensor<16x128xf16>
    %16 = tensor.empty() : tensor<128x64xf16>
    %transposed_2 = linalg.transpose ins(%arg5 : tensor<64x128xf16>) outs(%16 : tensor<128x64xf16>) permutation = [1, 0] 
    %17 = tensor.empty() : tensor<16x64xf32>
    %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %19 = linalg.matmul ins(%15, %transposed_2 : tensor<16x128xf16>, tensor<128x64xf16>) outs(%18 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %20 = tensor.empty() : tensor<16x64xf16>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%19 : tensor<16x64xf32>) outs(%20 : tensor<16x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<16x64xf16>
    %22 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%21, %arg6 : tensor<16x64xf16>, tensor<64xf16>) outs(%20 : tensor<16x64xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %31 = arith.addf %in, %in_4 : f16
      linalg.yield %31 : f16
    } -> tensor<16x64xf16>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%22 : tensor<16x64xf16>) outs(%20 : tensor<16x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      %31 = arith.cmpf ugt, %in, %cst_0 : f16
      %32 = arith.select %31, %in, %cst_0 : f16
      linalg.yield %32 : f16
    } -> tensor<16x64xf16>
    %24 = tensor.empty() : tensor<64x32xf16>
    %transposed_3 = linalg.transpose ins(%arg7 : tensor<32x64xf16>) outs(%24 : tensor<64x32xf16>) permutation = [1, 0] 
    %25 = tensor.empty() : tensor<16x32xf32>
    %26 = linalg.fill ins(%cst : f32) outs(%25 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %27 = linalg.matmul ins(%23, %transposed_3 : tensor<16x64xf16>, tensor<64x32xf16>) outs(%26 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %28 = tensor.empty() : tensor<16x32xf16>
    %29 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<16x32xf32>) outs(%28 : tensor<16x32xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<16x32xf16>
    %30 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%29, %arg8 : tensor<16x32xf16>, tensor<32xf16>) outs(%28 : tensor<16x32xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %31 = arith.addf %in, %in_4 : f16
      linalg.yield %31 : f16
    } -> tensor<16x32xf16>
    return %30 : tensor<16x32xf16>
  }
}
