// Softmaxes of parts of a product.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @softmax_of_slices(%arg0: tensor<8x16xf16>, %arg1: tensor<16x16xf16>) -> tensor<8x7xf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<8x16xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<8x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<8x16xf32>) -> tensor<8x16xf32>
    %3 = tensor.empty() : tensor<8x16xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<8x16xf32>) outs(%3 : tensor<8x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<8x16xf16>
    %extracted_slice = tensor.extract_slice %4[0, 2] [8, 7] [1, 1] : tensor<8x16xf16> to tensor<8x7xf16>
    %5 = tensor.empty() : tensor<8x7xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice : tensor<8x7xf16>) outs(%5 : tensor<8x7xf32>) {
    ^bb0(%in: f16, %out: f32):
      %31 = arith.extf %in : f16 to f32
      linalg.yield %31 : f32
    } -> tensor<8x7xf32>
    %7 = tensor.empty() : tensor<8xi64>
    %8 = linalg.fill ins(%c0_i64 : i64) outs(%7 : tensor<8xi64>) -> tensor<8xi64>
    %9 = tensor.empty() : tensor<8xf32>
    %10 = linalg.fill ins(%cst_0 : f32) outs(%9 : tensor<8xf32>) -> tensor<8xf32>
    %11:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%6 : tensor<8x7xf32>) outs(%10, %8 : tensor<8xf32>, tensor<8xi64>) {
    ^bb0(%in: f32, %out: f32, %out_4: i64):
      %31 = linalg.index 1 : index
      %32 = arith.index_cast %31 : index to i64
      %33 = arith.maximumf %in, %out : f32
      %34 = arith.cmpf ogt, %in, %out : f32
      %35 = arith.select %34, %32, %out_4 : i64
      linalg.yield %33, %35 : f32, i64
    } -> (tensor<8xf32>, tensor<8xi64>)
    %expanded = tensor.expand_shape %11#0 [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %expanded : tensor<8x7xf32>, tensor<8x1xf32>) outs(%5 : tensor<8x7xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %31 = arith.subf %in, %in_4 : f32
      linalg.yield %31 : f32
    } -> tensor<8x7xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<8x7xf32>) outs(%5 : tensor<8x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = math.exp %in : f32
      linalg.yield %31 : f32
    } -> tensor<8x7xf32>
    %14 = tensor.empty() : tensor<8x1xf32>
    %15 = linalg.fill ins(%cst : f32) outs(%14 : tensor<8x1xf32>) -> tensor<8x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%13 : tensor<8x7xf32>) outs(%15 : tensor<8x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.addf %in, %out : f32
      linalg.yield %31 : f32
    } -> tensor<8x1xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %16 : tensor<8x7xf32>, tensor<8x1xf32>) outs(%5 : tensor<8x7xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %31 = arith.divf %in, %in_4 : f32
      linalg.yield %31 : f32
    } -> tensor<8x7xf32>
    %18 = tensor.empty() : tensor<8x7xf16>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%17 : tensor<8x7xf32>) outs(%18 : tensor<8x7xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<8x7xf16>
    %extracted_slice_1 = tensor.extract_slice %4[0, 0] [8, 8] [1, 2] : tensor<8x16xf16> to tensor<8x8xf16>
    %20 = tensor.empty() : tensor<8x8xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_1 : tensor<8x8xf16>) outs(%20 : tensor<8x8xf32>) {
    ^bb0(%in: f16, %out: f32):
      %31 = arith.extf %in : f16 to f32
      linalg.yield %31 : f32
    } -> tensor<8x8xf32>
    %22:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%21 : tensor<8x8xf32>) outs(%10, %8 : tensor<8xf32>, tensor<8xi64>) {
    ^bb0(%in: f32, %out: f32, %out_4: i64):
      %31 = linalg.index 1 : index
      %32 = arith.index_cast %31 : index to i64
      %33 = arith.maximumf %in, %out : f32
      %34 = arith.cmpf ogt, %in, %out : f32
      %35 = arith.select %34, %32, %out_4 : i64
      linalg.yield %33, %35 : f32, i64
    } -> (tensor<8xf32>, tensor<8xi64>)
    %expanded_2 = tensor.expand_shape %22#0 [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%21, %expanded_2 : tensor<8x8xf32>, tensor<8x1xf32>) outs(%20 : tensor<8x8xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %31 = arith.subf %in, %in_4 : f32
      linalg.yield %31 : f32
    } -> tensor<8x8xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%23 : tensor<8x8xf32>) outs(%20 : tensor<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = math.exp %in : f32
      linalg.yield %31 : f32
    } -> tensor<8x8xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%24 : tensor<8x8xf32>) outs(%15 : tensor<8x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.addf %in, %out : f32
      linalg.yield %31 : f32
    } -> tensor<8x1xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%25 : tensor<8x1xf32>) outs(%14 : tensor<8x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = math.log %in : f32
      linalg.yield %31 : f32
    } -> tensor<8x1xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%23, %26 : tensor<8x8xf32>, tensor<8x1xf32>) outs(%20 : tensor<8x8xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %31 = arith.subf %in, %in_4 : f32
      linalg.yield %31 : f32
    } -> tensor<8x8xf32>
    %28 = tensor.empty() : tensor<8x8xf16>
    %29 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<8x8xf32>) outs(%28 : tensor<8x8xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<8x8xf16>
    %extracted_slice_3 = tensor.extract_slice %29[0, 0] [8, 7] [1, 1] : tensor<8x8xf16> to tensor<8x7xf16>
    %30 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%19, %extracted_slice_3 : tensor<8x7xf16>, tensor<8x7xf16>) outs(%18 : tensor<8x7xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %31 = arith.subf %in, %in_4 : f16
      linalg.yield %31 : f16
    } -> tensor<8x7xf16>
    return %30 : tensor<8x7xf16>
  }
}
