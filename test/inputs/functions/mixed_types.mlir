#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @mixed_types(%arg0: tensor<16x32xf32>, %arg1: tensor<32x24xf16>) -> tensor<16x24xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<32x24xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<32x24xf16>) outs(%0 : tensor<32x24xf32>) {
    ^bb0(%in: f16, %out: f32):
      %5 = arith.extf %in : f16 to f32
      linalg.yield %5 : f32
    } -> tensor<32x24xf32>
    %2 = tensor.empty() : tensor<16x24xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<16x24xf32>) -> tensor<16x24xf32>
    %4 = linalg.matmul ins(%arg0, %1 : tensor<16x32xf32>, tensor<32x24xf32>) outs(%3 : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %4 : tensor<16x24xf32>
  }
}
