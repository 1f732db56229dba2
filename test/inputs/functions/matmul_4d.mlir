#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @matmul_4d(%arg0: tensor<2x3x16x32xf16>, %arg1: tensor<2x3x32x16xf16>) -> tensor<2x3x16x16xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x3x16x32xf16> into tensor<6x16x32xf16>
    %collapsed_0 = tensor.collapse_shape %arg1 [[0, 1], [2], [3]] : tensor<2x3x32x16xf16> into tensor<6x32x16xf16>
    %0 = tensor.empty() : tensor<6x16x16xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<6x16x16xf32>) -> tensor<6x16x16xf32>
    %2 = linalg.batch_matmul ins(%collapsed, %collapsed_0 : tensor<6x16x32xf16>, tensor<6x32x16xf16>) outs(%1 : tensor<6x16x16xf32>) -> tensor<6x16x16xf32>
    %3 = tensor.empty() : tensor<6x16x16xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<6x16x16xf32>) outs(%3 : tensor<6x16x16xf16>) {
    ^bb0(%in: f32, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<6x16x16xf16>
    %expanded = tensor.expand_shape %4 [[0, 1], [2], [3]] output_shape [2, 3, 16, 16] : tensor<6x16x16xf16> into tensor<2x3x16x16xf16>
    return %expanded : tensor<2x3x16x16xf16>
  }
}
