// A convolution, the largest numbers of windows that overlap, means of windows that do not, and a layer.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5) -> (0, 0, 0, 0, 0, 0)>
#map5 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, 0, 0, 0, 0)>
#map6 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, 0, d4, 0)>
#map7 = affine_map<(d0, d1, d2, d3, d4, d5) -> (0, d3, 0, d5)>
#map8 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
#map9 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map10 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map11 = affine_map<(d0, d1, d2) -> (d1, 0)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map13 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map14 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map15 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
module {
  func.func @pooled_convolution(%arg0: tensor<4x2x3x3xf16>, %arg1: tensor<4xf16>, %arg2: tensor<8x16xf16>, %arg3: tensor<8xf16>, %arg4: tensor<1x2x8x8xf16>) -> tensor<1x8xf16> {
    %c2_i64 = arith.constant 2 : i64
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %c10_i64 = arith.constant 10 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %cst_1 = arith.constant 0xFC00 : f16
    %cst_2 = arith.constant 4.000000e+00 : f32
    %padded = tensor.pad %arg4 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst_0 : f16
    } : tensor<1x2x8x8xf16> to tensor<1x2x10x10xf16>
    %0 = tensor.empty() : tensor<3xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<3xi64>) {
    ^bb0(%out: i64):
      %53 = linalg.index 0 : index
      %54 = arith.index_cast %53 : index to i64
      linalg.yield %54 : i64
    } -> tensor<3xi64>
    %2 = tensor.empty() : tensor<8xi64>
    %3 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%2 : tensor<8xi64>) {
    ^bb0(%out: i64):
      %53 = linalg.index 0 : index
      %54 = arith.index_cast %53 : index to i64
      linalg.yield %54 : i64
    } -> tensor<8xi64>
    %expanded = tensor.expand_shape %1 [[0, 1]] output_shape [3, 1] : tensor<3xi64> into tensor<3x1xi64>
    %4 = tensor.empty() : tensor<3x8xi64>
    %5 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %3 : tensor<3x1xi64>, tensor<8xi64>) outs(%4 : tensor<3x8xi64>) {
    ^bb0(%in: i64, %in_19: i64, %out: i64):
      %53 = arith.addi %in, %in_19 : i64
      linalg.yield %53 : i64
    } -> tensor<3x8xi64>
    %expanded_3 = tensor.expand_shape %5 [[0], [1, 2, 3]] output_shape [3, 1, 8, 1] : tensor<3x8xi64> into tensor<3x1x8x1xi64>
    %expanded_4 = tensor.expand_shape %5 [[0, 1], [2, 3]] output_shape [1, 3, 1, 8] : tensor<3x8xi64> into tensor<1x3x1x8xi64>
    %6 = tensor.empty() : tensor<2xi64>
    %7 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%6 : tensor<2xi64>) {
    ^bb0(%out: i64):
      %53 = linalg.index 0 : index
      %54 = arith.index_cast %53 : index to i64
      linalg.yield %54 : i64
    } -> tensor<2xi64>
    %expanded_5 = tensor.expand_shape %7 [[0, 1, 2, 3, 4]] output_shape [2, 1, 1, 1, 1] : tensor<2xi64> into tensor<2x1x1x1x1xi64>
    %8 = tensor.empty() : tensor<1xi64>
    %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%8 : tensor<1xi64>) {
    ^bb0(%out: i64):
      linalg.yield %c0_i64 : i64
    } -> tensor<1xi64>
    %expanded_6 = tensor.expand_shape %9 [[0, 1, 2, 3, 4, 5]] output_shape [1, 1, 1, 1, 1, 1] : tensor<1xi64> into tensor<1x1x1x1x1x1xi64>
    %10 = tensor.empty() : tensor<1x2x3x3x8x8xf16>
    %11 = linalg.generic {indexing_maps = [#map4, #map5, #map6, #map7, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6, %expanded_5, %expanded_3, %expanded_4 : tensor<1x1x1x1x1x1xi64>, tensor<2x1x1x1x1xi64>, tensor<3x1x8x1xi64>, tensor<1x3x1x8xi64>) outs(%10 : tensor<1x2x3x3x8x8xf16>) {
    ^bb0(%in: i64, %in_19: i64, %in_20: i64, %in_21: i64, %out: f16):
      %53 = arith.cmpi slt, %in, %c0_i64 : i64
      %54 = arith.addi %in, %c1_i64 : i64
      %55 = arith.select %53, %54, %in : i64
      %56 = arith.index_cast %55 : i64 to index
      %57 = arith.cmpi slt, %in_19, %c0_i64 : i64
      %58 = arith.addi %in_19, %c2_i64 : i64
      %59 = arith.select %57, %58, %in_19 : i64
      %60 = arith.index_cast %59 : i64 to index
      %61 = arith.cmpi slt, %in_20, %c0_i64 : i64
      %62 = arith.addi %in_20, %c10_i64 : i64
      %63 = arith.select %61, %62, %in_20 : i64
      %64 = arith.index_cast %63 : i64 to index
      %65 = arith.cmpi slt, %in_21, %c0_i64 : i64
      %66 = arith.addi %in_21, %c10_i64 : i64
      %67 = arith.select %65, %66, %in_21 : i64
      %68 = arith.index_cast %67 : i64 to index
      %extracted = tensor.extract %padded[%56, %60, %64, %68] : tensor<1x2x10x10xf16>
      linalg.yield %extracted : f16
    } -> tensor<1x2x3x3x8x8xf16>
    %collapsed = tensor.collapse_shape %11 [[0], [1, 2, 3], [4, 5]] : tensor<1x2x3x3x8x8xf16> into tensor<1x18x64xf16>
    %collapsed_7 = tensor.collapse_shape %arg0 [[0], [1, 2, 3]] : tensor<4x2x3x3xf16> into tensor<4x18xf16>
    %12 = tensor.empty() : tensor<1x4x18xf16>
    %13 = linalg.generic {indexing_maps = [#map9, #map10], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_7 : tensor<4x18xf16>) outs(%12 : tensor<1x4x18xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<1x4x18xf16>
    %14 = tensor.empty() : tensor<1x4x64xf32>
    %15 = linalg.fill ins(%cst : f32) outs(%14 : tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
    %16 = linalg.batch_matmul ins(%13, %collapsed : tensor<1x4x18xf16>, tensor<1x18x64xf16>) outs(%15 : tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
    %17 = tensor.empty() : tensor<1x4x64xf16>
    %18 = linalg.generic {indexing_maps = [#map10, #map10], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<1x4x64xf32>) outs(%17 : tensor<1x4x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %53 = arith.truncf %in : f32 to f16
      linalg.yield %53 : f16
    } -> tensor<1x4x64xf16>
    %expanded_8 = tensor.expand_shape %arg1 [[0, 1]] output_shape [4, 1] : tensor<4xf16> into tensor<4x1xf16>
    %19 = linalg.generic {indexing_maps = [#map10, #map11, #map10], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %expanded_8 : tensor<1x4x64xf16>, tensor<4x1xf16>) outs(%17 : tensor<1x4x64xf16>) {
    ^bb0(%in: f16, %in_19: f16, %out: f16):
      %53 = arith.addf %in, %in_19 : f16
      linalg.yield %53 : f16
    } -> tensor<1x4x64xf16>
    %expanded_9 = tensor.expand_shape %19 [[0], [1], [2, 3]] output_shape [1, 4, 8, 8] : tensor<1x4x64xf16> into tensor<1x4x8x8xf16>
    %20 = tensor.empty() : tensor<1x4x8x8xf16>
    %21 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9 : tensor<1x4x8x8xf16>) outs(%20 : tensor<1x4x8x8xf16>) {
    ^bb0(%in: f16, %out: f16):
      %53 = arith.cmpf ugt, %in, %cst_0 : f16
      %54 = arith.select %53, %in, %cst_0 : f16
      linalg.yield %54 : f16
    } -> tensor<1x4x8x8xf16>
    %padded_10 = tensor.pad %21 low[0, 0, 1, 1] high[0, 0, 0, 0] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst_1 : f16
    } : tensor<1x4x8x8xf16> to tensor<1x4x9x9xf16>
    %extracted_slice = tensor.extract_slice %padded_10[0, 0, 0, 0] [1, 4, 4, 9] [1, 1, 2, 1] : tensor<1x4x9x9xf16> to tensor<1x4x4x9xf16>
    %extracted_slice_11 = tensor.extract_slice %padded_10[0, 0, 1, 0] [1, 4, 4, 9] [1, 1, 2, 1] : tensor<1x4x9x9xf16> to tensor<1x4x4x9xf16>
    %22 = tensor.empty() : tensor<1x4x4x9xf16>
    %23 = linalg.generic {indexing_maps = [#map12, #map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice, %extracted_slice_11 : tensor<1x4x4x9xf16>, tensor<1x4x4x9xf16>) outs(%22 : tensor<1x4x4x9xf16>) {
    ^bb0(%in: f16, %in_19: f16, %out: f16):
      %53 = arith.cmpf ogt, %in, %in_19 : f16
      %54 = arith.select %53, %in, %in_19 : f16
      linalg.yield %54 : f16
    } -> tensor<1x4x4x9xf16>
    %extracted_slice_12 = tensor.extract_slice %padded_10[0, 0, 2, 0] [1, 4, 4, 9] [1, 1, 2, 1] : tensor<1x4x9x9xf16> to tensor<1x4x4x9xf16>
    %24 = linalg.generic {indexing_maps = [#map12, #map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23, %extracted_slice_12 : tensor<1x4x4x9xf16>, tensor<1x4x4x9xf16>) outs(%22 : tensor<1x4x4x9xf16>) {
    ^bb0(%in: f16, %in_19: f16, %out: f16):
      %53 = arith.cmpf ogt, %in, %in_19 : f16
      %54 = arith.select %53, %in, %in_19 : f16
      linalg.yield %54 : f16
    } -> tensor<1x4x4x9xf16>
    %extracted_slice_13 = tensor.extract_slice %24[0, 0, 0, 0] [1, 4, 4, 4] [1, 1, 1, 2] : tensor<1x4x4x9xf16> to tensor<1x4x4x4xf16>
    %extracted_slice_14 = tensor.extract_slice %24[0, 0, 0, 1] [1, 4, 4, 4] [1, 1, 1, 2] : tensor<1x4x4x9xf16> to tensor<1x4x4x4xf16>
    %25 = tensor.empty() : tensor<1x4x4x4xf16>
    %26 = linalg.generic {indexing_maps = [#map12, #map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_13, %extracted_slice_14 : tensor<1x4x4x4xf16>, tensor<1x4x4x4xf16>) outs(%25 : tensor<1x4x4x4xf16>) {
    ^bb0(%in: f16, %in_19: f16, %out: f16):
      %53 = arith.cmpf ogt, %in, %in_19 : f16
      %54 = arith.select %53, %in, %in_19 : f16
      linalg.yield %54 : f16
    } -> tensor<1x4x4x4xf16>
    %extracted_slice_15 = tensor.extract_slice %24[0, 0, 0, 2] [1, 4, 4, 4] [1, 1, 1, 2] : tensor<1x4x4x9xf16> to tensor<1x4x4x4xf16>
    %27 = linalg.generic {indexing_maps = [#map12, #map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %extracted_slice_15 : tensor<1x4x4x4xf16>, tensor<1x4x4x4xf16>) outs(%25 : tensor<1x4x4x4xf16>) {
    ^bb0(%in: f16, %in_19: f16, %out: f16):
      %53 = arith.cmpf ogt, %in, %in_19 : f16
      %54 = arith.select %53, %in, %in_19 : f16
      linalg.yield %54 : f16
    } -> tensor<1x4x4x4xf16>
    %28 = tensor.empty() : tensor<1x4x4x4xf32>
    %29 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<1x4x4x4xf16>) outs(%28 : tensor<1x4x4x4xf32>) {
    ^bb0(%in: f16, %out: f32):
      %53 = arith.extf %in : f16 to f32
      linalg.yield %53 : f32
    } -> tensor<1x4x4x4xf32>
    %expanded_16 = tensor.expand_shape %29 [[0], [1], [2, 3], [4]] output_shape [1, 4, 2, 2, 4] : tensor<1x4x4x4xf32> into tensor<1x4x2x2x4xf32>
    %30 = tensor.empty() : tensor<1x4x2x4xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32>
    %32 = linalg.generic {indexing_maps = [#map13, #map14], iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]} ins(%expanded_16 : tensor<1x4x2x2x4xf32>) outs(%31 : tensor<1x4x2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %53 = arith.addf %in, %out : f32
      linalg.yield %53 : f32
    } -> tensor<1x4x2x4xf32>
    %expanded_17 = tensor.expand_shape %32 [[0], [1], [2], [3, 4]] output_shape [1, 4, 2, 2, 2] : tensor<1x4x2x4xf32> into tensor<1x4x2x2x2xf32>
    %33 = tensor.empty() : tensor<1x4x2x2xf32>
    %34 = linalg.fill ins(%cst : f32) outs(%33 : tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
    %35 = linalg.generic {indexing_maps = [#map13, #map15], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%expanded_17 : tensor<1x4x2x2x2xf32>) outs(%34 : tensor<1x4x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %53 = arith.addf %in, %out : f32
      linalg.yield %53 : f32
    } -> tensor<1x4x2x2xf32>
    %36 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35 : tensor<1x4x2x2xf32>) outs(%33 : tensor<1x4x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %53 = arith.divf %in, %cst_2 : f32
      linalg.yield %53 : f32
    } -> tensor<1x4x2x2xf32>
    %37 = tensor.empty() : tensor<1x4x2x2xf16>
    %38 = linalg.generic {indexing_maps = [#map12, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<1x4x2x2xf32>) outs(%37 : tensor<1x4x2x2xf16>) {
    ^bb0(%in: f32, %out: f16):
      %53 = arith.truncf %in : f32 to f16
      linalg.yield %53 : f16
    } -> tensor<1x4x2x2xf16>
    %collapsed_18 = tensor.collapse_shape %38 [[0], [1, 2, 3]] : tensor<1x4x2x2xf16> into tensor<1x16xf16>
    %39 = tensor.empty() : tensor<16x8xf16>
    %transposed = linalg.transpose ins(%arg2 : tensor<8x16xf16>) outs(%39 : tensor<16x8xf16>) permutation = [1, 0] 
    %40 = tensor.empty() : tensor<8xf32>
    %41 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg3 : tensor<8xf16>) outs(%40 : tensor<8xf32>) {
    ^bb0(%in: f16, %out: f32):
      %53 = arith.extf %in : f16 to f32
      linalg.yield %53 : f32
    } -> tensor<8xf32>
    %42 = tensor.empty() : tensor<1x16xf32>
    %43 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%collapsed_18 : tensor<1x16xf16>) outs(%42 : tensor<1x16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %53 = arith.extf %in : f16 to f32
      linalg.yield %53 : f32
    } -> tensor<1x16xf32>
    %44 = tensor.empty() : tensor<16x8xf32>
    %45 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%transposed : tensor<16x8xf16>) outs(%44 : tensor<16x8xf32>) {
    ^bb0(%in: f16, %out: f32):
      %53 = arith.extf %in : f16 to f32
      linalg.yield %53 : f32
    } -> tensor<16x8xf32>
    %46 = tensor.empty() : tensor<1x8xf32>
    %47 = linalg.fill ins(%cst : f32) outs(%46 : tensor<1x8xf32>) -> tensor<1x8xf32>
    %48 = linalg.matmul ins(%43, %45 : tensor<1x16xf32>, tensor<16x8xf32>) outs(%47 : tensor<1x8xf32>) -> tensor<1x8xf32>
    %49 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%41 : tensor<8xf32>) outs(%46 : tensor<1x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x8xf32>
    %50 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%48, %49 : tensor<1x8xf32>, tensor<1x8xf32>) outs(%46 : tensor<1x8xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %53 = arith.addf %in, %in_19 : f32
      linalg.yield %53 : f32
    } -> tensor<1x8xf32>
    %51 = tensor.empty() : tensor<1x8xf16>
    %52 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%50 : tensor<1x8xf32>) outs(%51 : tensor<1x8xf16>) {
    ^bb0(%in: f32, %out: f16):
      %53 = arith.truncf %in : f32 to f16
      linalg.yield %53 : f16
    } -> tensor<1x8xf16>
    return %52 : tensor<1x8xf16>
  }
}
