#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @mlp4_bf16_3d(%arg0: tensor<2x8x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64x64xbf16>) -> tensor<2x8x64xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : bf16
    %0 = tensor.empty() : tensor<64x64xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<64x64xbf16>) outs(%0 : tensor<64x64xbf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2x64x64xbf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<64x64xbf16>) outs(%1 : tensor<2x64x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x64xbf16>
    %3 = tensor.empty() : tensor<2x8x64xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    %5 = linalg.batch_matmul ins(%arg0, %2 : tensor<2x8x64xbf16>, tensor<2x64x64xbf16>) outs(%4 : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    %6 = tensor.empty() : tensor<2x8x64xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x8x64xf32>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %23 = arith.truncf %in : f32 to bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<2x8x64xbf16>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %23 = arith.negf %in : bf16
      %24 = math.exp %23 : bf16
      %25 = arith.addf %24, %cst_0 : bf16
      %26 = arith.divf %cst_0, %25 : bf16
      linalg.yield %26 : bf16
    } -> tensor<2x8x64xbf16>
    %9 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %7 : tensor<2x8x64xbf16>, tensor<2x8x64xbf16>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: bf16, %in_4: bf16, %out: bf16):
      %23 = arith.mulf %in, %in_4 : bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    %transposed_1 = linalg.transpose ins(%arg2 : tensor<64x64xbf16>) outs(%0 : tensor<64x64xbf16>) permutation = [1, 0] 
    %10 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_1 : tensor<64x64xbf16>) outs(%1 : tensor<2x64x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x64xbf16>
    %11 = linalg.batch_matmul ins(%9, %10 : tensor<2x8x64xbf16>, tensor<2x64x64xbf16>) outs(%4 : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<2x8x64xf32>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %23 = arith.truncf %in : f32 to bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    %13 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<2x8x64xbf16>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %23 = arith.negf %in : bf16
      %24 = math.exp %23 : bf16
      %25 = arith.addf %24, %cst_0 : bf16
      %26 = arith.divf %cst_0, %25 : bf16
      linalg.yield %26 : bf16
    } -> tensor<2x8x64xbf16>
    %14 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %12 : tensor<2x8x64xbf16>, tensor<2x8x64xbf16>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: bf16, %in_4: bf16, %out: bf16):
      %23 = arith.mulf %in, %in_4 : bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    %transposed_2 = linalg.transpose ins(%arg3 : tensor<64x64xbf16>) outs(%0 : tensor<64x64xbf16>) permutation = [1, 0] 
    %15 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_2 : tensor<64x64xbf16>) outs(%1 : tensor<2x64x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x64xbf16>
    %16 = linalg.batch_matmul ins(%14, %15 : tensor<2x8x64xbf16>, tensor<2x64x64xbf16>) outs(%4 : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<2x8x64xf32>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %23 = arith.truncf %in : f32 to bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    %18 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<2x8x64xbf16>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %23 = arith.negf %in : bf16
      %24 = math.exp %23 : bf16
      %25 = arith.addf %24, %cst_0 : bf16
      %26 = arith.divf %cst_0, %25 : bf16
      linalg.yield %26 : bf16
    } -> tensor<2x8x64xbf16>
    %19 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %17 : tensor<2x8x64xbf16>, tensor<2x8x64xbf16>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: bf16, %in_4: bf16, %out: bf16):
      %23 = arith.mulf %in, %in_4 : bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    %transposed_3 = linalg.transpose ins(%arg4 : tensor<64x64xbf16>) outs(%0 : tensor<64x64xbf16>) permutation = [1, 0] 
    %20 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_3 : tensor<64x64xbf16>) outs(%1 : tensor<2x64x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x64x64xbf16>
    %21 = linalg.batch_matmul ins(%19, %20 : tensor<2x8x64xbf16>, tensor<2x64x64xbf16>) outs(%4 : tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    %22 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21 : tensor<2x8x64xf32>) outs(%6 : tensor<2x8x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %23 = arith.truncf %in : f32 to bf16
      linalg.yield %23 : bf16
    } -> tensor<2x8x64xbf16>
    return %22 : tensor<2x8x64xbf16>
  }
}
