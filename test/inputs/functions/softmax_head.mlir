#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @softmax_head(%arg0: tensor<5x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64xbf16>, %arg3: tensor<50x64xbf16>, %arg4: tensor<50xbf16>) -> tensor<5x50xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : bf16
    %c0_i64 = arith.constant 0 : i64
    %cst_1 = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<64x64xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<64x64xbf16>) outs(%0 : tensor<64x64xbf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<5x64xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<5x64xf32>) -> tensor<5x64xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<5x64xbf16>, tensor<64x64xbf16>) outs(%2 : tensor<5x64xf32>) -> tensor<5x64xf32>
    %4 = tensor.empty() : tensor<5x64xbf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<5x64xf32>) outs(%4 : tensor<5x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %28 = arith.truncf %in : f32 to bf16
      linalg.yield %28 : bf16
    } -> tensor<5x64xbf16>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %arg2 : tensor<5x64xbf16>, tensor<64xbf16>) outs(%4 : tensor<5x64xbf16>) {
    ^bb0(%in: bf16, %in_3: bf16, %out: bf16):
      %28 = arith.addf %in, %in_3 : bf16
      linalg.yield %28 : bf16
    } -> tensor<5x64xbf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<5x64xbf16>) outs(%4 : tensor<5x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %28 = arith.negf %in : bf16
      %29 = math.exp %28 : bf16
      %30 = arith.addf %29, %cst_0 : bf16
      %31 = arith.divf %cst_0, %30 : bf16
      linalg.yield %31 : bf16
    } -> tensor<5x64xbf16>
    %8 = tensor.empty() : tensor<64x50xbf16>
    %transposed_2 = linalg.transpose ins(%arg3 : tensor<50x64xbf16>) outs(%8 : tensor<64x50xbf16>) permutation = [1, 0] 
    %9 = tensor.empty() : tensor<5x50xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<5x50xf32>) -> tensor<5x50xf32>
    %11 = linalg.matmul ins(%7, %transposed_2 : tensor<5x64xbf16>, tensor<64x50xbf16>) outs(%10 : tensor<5x50xf32>) -> tensor<5x50xf32>
    %12 = tensor.empty() : tensor<5x50xbf16>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<5x50xf32>) outs(%12 : tensor<5x50xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %28 = arith.truncf %in : f32 to bf16
      linalg.yield %28 : bf16
    } -> tensor<5x50xbf16>
    %14 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %arg4 : tensor<5x50xbf16>, tensor<50xbf16>) outs(%12 : tensor<5x50xbf16>) {
    ^bb0(%in: bf16, %in_3: bf16, %out: bf16):
      %28 = arith.addf %in, %in_3 : bf16
      linalg.yield %28 : bf16
    } -> tensor<5x50xbf16>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<5x50xbf16>) outs(%9 : tensor<5x50xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %28 = arith.extf %in : bf16 to f32
      linalg.yield %28 : f32
    } -> tensor<5x50xf32>
    %16 = tensor.empty() : tensor<5xi64>
    %17 = linalg.fill ins(%c0_i64 : i64) outs(%16 : tensor<5xi64>) -> tensor<5xi64>
    %18 = tensor.empty() : tensor<5xf32>
    %19 = linalg.fill ins(%cst_1 : f32) outs(%18 : tensor<5xf32>) -> tensor<5xf32>
    %20:2 = linalg.generic {indexing_maps = [#map, #map2, #map2], iterator_types = ["parallel", "reduction"]} ins(%15 : tensor<5x50xf32>) outs(%19, %17 : tensor<5xf32>, tensor<5xi64>) {
    ^bb0(%in: f32, %out: f32, %out_3: i64):
      %28 = linalg.index 1 : index
      %29 = arith.index_cast %28 : index to i64
      %30 = arith.maximumf %in, %out : f32
      %31 = arith.cmpf ogt, %in, %out : f32
      %32 = arith.select %31, %29, %out_3 : i64
      linalg.yield %30, %32 : f32, i64
    } -> (tensor<5xf32>, tensor<5xi64>)
    %expanded = tensor.expand_shape %20#0 [[0, 1]] output_shape [5, 1] : tensor<5xf32> into tensor<5x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%15, %expanded : tensor<5x50xf32>, tensor<5x1xf32>) outs(%9 : tensor<5x50xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %28 = arith.subf %in, %in_3 : f32
      linalg.yield %28 : f32
    } -> tensor<5x50xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%21 : tensor<5x50xf32>) outs(%9 : tensor<5x50xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = math.exp %in : f32
      linalg.yield %28 : f32
    } -> tensor<5x50xf32>
    %23 = tensor.empty() : tensor<5x1xf32>
    %24 = linalg.fill ins(%cst : f32) outs(%23 : tensor<5x1xf32>) -> tensor<5x1xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "reduction"]} ins(%22 : tensor<5x50xf32>) outs(%24 : tensor<5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.addf %in, %out : f32
      linalg.yield %28 : f32
    } -> tensor<5x1xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%22, %25 : tensor<5x50xf32>, tensor<5x1xf32>) outs(%9 : tensor<5x50xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %28 = arith.divf %in, %in_3 : f32
      linalg.yield %28 : f32
    } -> tensor<5x50xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%26 : tensor<5x50xf32>) outs(%12 : tensor<5x50xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %28 = arith.truncf %in : f32 to bf16
      linalg.yield %28 : bf16
    } -> tensor<5x50xbf16>
    return %27 : tensor<5x50xbf16>
  }
}
