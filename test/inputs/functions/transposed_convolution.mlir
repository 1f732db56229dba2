// A transposed convolution whose patches overlap, and an activation.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3, d4, d5) -> (0, 0, 0, 0, 0, 0)>
#map6 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, 0, 0, 0, 0)>
#map7 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, 0, d4, 0)>
#map8 = affine_map<(d0, d1, d2, d3, d4, d5) -> (0, d3, 0, d5)>
#map9 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
#map10 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map11 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map12 = affine_map<(d0, d1, d2) -> (d1, 0)>
module {
  func.func @transposed_convolution(%arg0: tensor<4x3x3x3xf16>, %arg1: tensor<3xf16>, %arg2: tensor<1x4x5x4xf16>) -> tensor<1x3x10x8xf16> {
    %c10_i64 = arith.constant 10 : i64
    %c4_i64 = arith.constant 4 : i64
    %c1_i64 = arith.constant 1 : i64
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f16
    %c12_i64 = arith.constant 12 : i64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %c2 = arith.constant 2 : index
    %expanded = tensor.expand_shape %arg2 [[0], [1], [2], [3, 4]] output_shape [1, 4, 5, 1, 4] : tensor<1x4x5x4xf16> into tensor<1x4x5x1x4xf16>
    %padded = tensor.pad %expanded low[0, 0, 0, 0, 0] high[0, 0, 0, 1, 0] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst : f16
    } : tensor<1x4x5x1x4xf16> to tensor<1x4x5x2x4xf16>
    %collapsed = tensor.collapse_shape %padded [[0], [1], [2, 3], [4]] : tensor<1x4x5x2x4xf16> into tensor<1x4x10x4xf16>
    %extracted_slice = tensor.extract_slice %collapsed[0, 0, 0, 0] [1, 4, 9, 4] [1, 1, 1, 1] : tensor<1x4x10x4xf16> to tensor<1x4x9x4xf16>
    %padded_2 = tensor.pad %extracted_slice low[0, 0, 1, 0] high[0, 0, 2, 0] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f16
    } : tensor<1x4x9x4xf16> to tensor<1x4x12x4xf16>
    %expanded_3 = tensor.expand_shape %padded_2 [[0], [1], [2], [3, 4]] output_shape [1, 4, 12, 4, 1] : tensor<1x4x12x4xf16> into tensor<1x4x12x4x1xf16>
    %padded_4 = tensor.pad %expanded_3 low[0, 0, 0, 0, 0] high[0, 0, 0, 0, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst : f16
    } : tensor<1x4x12x4x1xf16> to tensor<1x4x12x4x2xf16>
    %collapsed_5 = tensor.collapse_shape %padded_4 [[0], [1], [2], [3, 4]] : tensor<1x4x12x4x2xf16> into tensor<1x4x12x8xf16>
    %extracted_slice_6 = tensor.extract_slice %collapsed_5[0, 0, 0, 0] [1, 4, 12, 7] [1, 1, 1, 1] : tensor<1x4x12x8xf16> to tensor<1x4x12x7xf16>
    %padded_7 = tensor.pad %extracted_slice_6 low[0, 0, 0, 1] high[0, 0, 0, 2] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f16
    } : tensor<1x4x12x7xf16> to tensor<1x4x12x10xf16>
    %0 = tensor.empty() : tensor<4x3x3x3xf16>
    %1 = linalg.fill ins(%cst : f16) outs(%0 : tensor<4x3x3x3xf16>) -> tensor<4x3x3x3xf16>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x3x3x3xf16>) outs(%1 : tensor<4x3x3x3xf16>) {
    ^bb0(%in: f16, %out: f16):
      %34 = linalg.index 0 : index
      %35 = linalg.index 1 : index
      %36 = linalg.index 2 : index
      %37 = linalg.index 3 : index
      %38 = arith.subi %c2, %36 : index
      %39 = arith.subi %c2, %37 : index
      %extracted = tensor.extract %arg0[%34, %35, %38, %39] : tensor<4x3x3x3xf16>
      linalg.yield %extracted : f16
    } -> tensor<4x3x3x3xf16>
    %expanded_8 = tensor.expand_shape %2 [[0, 1], [2], [3], [4]] output_shape [1, 4, 3, 3, 3] : tensor<4x3x3x3xf16> into tensor<1x4x3x3x3xf16>
    %3 = tensor.empty() : tensor<1x3x4x3x3xf16>
    %transposed = linalg.transpose ins(%expanded_8 : tensor<1x4x3x3x3xf16>) outs(%3 : tensor<1x3x4x3x3xf16>) permutation = [0, 2, 1, 3, 4] 
    %4 = tensor.empty() : tensor<3xi64>
    %5 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%4 : tensor<3xi64>) {
    ^bb0(%out: i64):
      %34 = linalg.index 0 : index
      %35 = arith.index_cast %34 : index to i64
      linalg.yield %35 : i64
    } -> tensor<3xi64>
    %6 = tensor.empty() : tensor<10xi64>
    %7 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%6 : tensor<10xi64>) {
    ^bb0(%out: i64):
      %34 = linalg.index 0 : index
      %35 = arith.index_cast %34 : index to i64
      linalg.yield %35 : i64
    } -> tensor<10xi64>
    %expanded_9 = tensor.expand_shape %5 [[0, 1]] output_shape [3, 1] : tensor<3xi64> into tensor<3x1xi64>
    %8 = tensor.empty() : tensor<3x10xi64>
    %9 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded_9, %7 : tensor<3x1xi64>, tensor<10xi64>) outs(%8 : tensor<3x10xi64>) {
    ^bb0(%in: i64, %in_18: i64, %out: i64):
      %34 = arith.addi %in, %in_18 : i64
      linalg.yield %34 : i64
    } -> tensor<3x10xi64>
    %expanded_10 = tensor.expand_shape %9 [[0], [1, 2, 3]] output_shape [3, 1, 10, 1] : tensor<3x10xi64> into tensor<3x1x10x1xi64>
    %10 = tensor.empty() : tensor<8xi64>
    %11 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%10 : tensor<8xi64>) {
    ^bb0(%out: i64):
      %34 = linalg.index 0 : index
      %35 = arith.index_cast %34 : index to i64
      linalg.yield %35 : i64
    } -> tensor<8xi64>
    %12 = tensor.empty() : tensor<3x8xi64>
    %13 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded_9, %11 : tensor<3x1xi64>, tensor<8xi64>) outs(%12 : tensor<3x8xi64>) {
    ^bb0(%in: i64, %in_18: i64, %out: i64):
      %34 = arith.addi %in, %in_18 : i64
      linalg.yield %34 : i64
    } -> tensor<3x8xi64>
    %expanded_11 = tensor.expand_shape %13 [[0, 1], [2, 3]] output_shape [1, 3, 1, 8] : tensor<3x8xi64> into tensor<1x3x1x8xi64>
    %14 = tensor.empty() : tensor<4xi64>
    %15 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%14 : tensor<4xi64>) {
    ^bb0(%out: i64):
      %34 = linalg.index 0 : index
      %35 = arith.index_cast %34 : index to i64
      linalg.yield %35 : i64
    } -> tensor<4xi64>
    %expanded_12 = tensor.expand_shape %15 [[0, 1, 2, 3, 4]] output_shape [4, 1, 1, 1, 1] : tensor<4xi64> into tensor<4x1x1x1x1xi64>
    %16 = tensor.empty() : tensor<1xi64>
    %17 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%16 : tensor<1xi64>) {
    ^bb0(%out: i64):
      linalg.yield %c0_i64 : i64
    } -> tensor<1xi64>
    %expanded_13 = tensor.expand_shape %17 [[0, 1, 2, 3, 4, 5]] output_shape [1, 1, 1, 1, 1, 1] : tensor<1xi64> into tensor<1x1x1x1x1x1xi64>
    %18 = tensor.empty() : tensor<1x4x3x3x10x8xf16>
    %19 = linalg.generic {indexing_maps = [#map5, #map6, #map7, #map8, #map9], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_13, %expanded_12, %expanded_10, %expanded_11 : tensor<1x1x1x1x1x1xi64>, tensor<4x1x1x1x1xi64>, tensor<3x1x10x1xi64>, tensor<1x3x1x8xi64>) outs(%18 : tensor<1x4x3x3x10x8xf16>) {
    ^bb0(%in: i64, %in_18: i64, %in_19: i64, %in_20: i64, %out: f16):
      %34 = arith.cmpi slt, %in, %c0_i64 : i64
      %35 = arith.addi %in, %c1_i64 : i64
      %36 = arith.select %34, %35, %in : i64
      %37 = arith.index_cast %36 : i64 to index
      %38 = arith.cmpi slt, %in_18, %c0_i64 : i64
      %39 = arith.addi %in_18, %c4_i64 : i64
      %40 = arith.select %38, %39, %in_18 : i64
      %41 = arith.index_cast %40 : i64 to index
      %42 = arith.cmpi slt, %in_19, %c0_i64 : i64
      %43 = arith.addi %in_19, %c12_i64 : i64
      %44 = arith.select %42, %43, %in_19 : i64
      %45 = arith.index_cast %44 : i64 to index
      %46 = arith.cmpi slt, %in_20, %c0_i64 : i64
      %47 = arith.addi %in_20, %c10_i64 : i64
      %48 = arith.select %46, %47, %in_20 : i64
      %49 = arith.index_cast %48 : i64 to index
      %extracted = tensor.extract %padded_7[%37, %41, %45, %49] : tensor<1x4x12x10xf16>
      linalg.yield %extracted : f16
    } -> tensor<1x4x3x3x10x8xf16>
    %collapsed_14 = tensor.collapse_shape %19 [[0], [1, 2, 3], [4, 5]] : tensor<1x4x3x3x10x8xf16> into tensor<1x36x80xf16>
    %collapsed_15 = tensor.collapse_shape %transposed [[0, 1], [2, 3, 4]] : tensor<1x3x4x3x3xf16> into tensor<3x36xf16>
    %20 = tensor.empty() : tensor<1x3x36xf16>
    %21 = linalg.generic {indexing_maps = [#map10, #map11], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_15 : tensor<3x36xf16>) outs(%20 : tensor<1x3x36xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<1x3x36xf16>
    %22 = tensor.empty() : tensor<1x3x80xf32>
    %23 = linalg.fill ins(%cst_0 : f32) outs(%22 : tensor<1x3x80xf32>) -> tensor<1x3x80xf32>
    %24 = linalg.batch_matmul ins(%21, %collapsed_14 : tensor<1x3x36xf16>, tensor<1x36x80xf16>) outs(%23 : tensor<1x3x80xf32>) -> tensor<1x3x80xf32>
    %25 = tensor.empty() : tensor<1x3x80xf16>
    %26 = linalg.generic {indexing_maps = [#map11, #map11], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24 : tensor<1x3x80xf32>) outs(%25 : tensor<1x3x80xf16>) {
    ^bb0(%in: f32, %out: f16):
      %34 = arith.truncf %in : f32 to f16
      linalg.yield %34 : f16
    } -> tensor<1x3x80xf16>
    %expanded_16 = tensor.expand_shape %arg1 [[0, 1]] output_shape [3, 1] : tensor<3xf16> into tensor<3x1xf16>
    %27 = linalg.generic {indexing_maps = [#map11, #map12, #map11], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %expanded_16 : tensor<1x3x80xf16>, tensor<3x1xf16>) outs(%25 : tensor<1x3x80xf16>) {
    ^bb0(%in: f16, %in_18: f16, %out: f16):
      %34 = arith.addf %in, %in_18 : f16
      linalg.yield %34 : f16
    } -> tensor<1x3x80xf16>
    %expanded_17 = tensor.expand_shape %27 [[0], [1], [2, 3]] output_shape [1, 3, 10, 8] : tensor<1x3x80xf16> into tensor<1x3x10x8xf16>
    %28 = tensor.empty() : tensor<1x3x10x8xf32>
    %29 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_17 : tensor<1x3x10x8xf16>) outs(%28 : tensor<1x3x10x8xf32>) {
    ^bb0(%in: f16, %out: f32):
      %34 = arith.extf %in : f16 to f32
      linalg.yield %34 : f32
    } -> tensor<1x3x10x8xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<1x3x10x8xf32>) outs(%28 : tensor<1x3x10x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.negf %in : f32
      %35 = math.exp %34 : f32
      %36 = arith.addf %35, %cst_1 : f32
      %37 = arith.divf %cst_1, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<1x3x10x8xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %30 : tensor<1x3x10x8xf32>, tensor<1x3x10x8xf32>) outs(%28 : tensor<1x3x10x8xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %34 = arith.mulf %in, %in_18 : f32
      linalg.yield %34 : f32
    } -> tensor<1x3x10x8xf32>
    %32 = tensor.empty() : tensor<1x3x10x8xf16>
    %33 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31 : tensor<1x3x10x8xf32>) outs(%32 : tensor<1x3x10x8xf16>) {
    ^bb0(%in: f32, %out: f16):
      %34 = arith.truncf %in : f32 to f16
      linalg.yield %34 : f16
    } -> tensor<1x3x10x8xf16>
    return %33 : tensor<1x3x10x8xf16>
  }
}
