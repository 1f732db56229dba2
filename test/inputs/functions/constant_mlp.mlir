#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @constant_mlp(%arg0: tensor<16x16xf16>) -> tensor<16x8xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %cst_1 = arith.constant dense<"0x000000000034003800B800B60035003800B400B2003600AC00B4003600B400B00030002C00B700B8003600340036002C003500B200AC003500B600B200B600AC003800B600B000B0003700B5000000B400B8003400B700B40000000000B700380034003800B7003400B4002C003700B4003400B600B2003800AC000000B400B700AC003000AC003500B000300035003700AC00B800340000003600AC00B000B700AC00300035003600B50030003500B400B20036002C0000003200000038003400B800B6002C003500B7003200340035003600B5002C003500B000B5000000B700B50036003200360036003600B20000003000B4003700B80036003000B40034"> : tensor<8x16xf16>
    %cst_2 = arith.constant dense<[-6.250000e-02, 3.750000e-01, 5.000000e-01, -2.500000e-01, -6.250000e-02, -3.125000e-01, 1.875000e-01, 1.250000e-01]> : tensor<8xf16>
    %cst_3 = arith.constant dense<[[3.750000e-01, 3.125000e-01, 5.000000e-01, 5.000000e-01, 4.375000e-01, -3.750000e-01, -5.000000e-01, 0.000000e+00], [-1.875000e-01, 4.375000e-01, 3.125000e-01, -6.250000e-02, 6.250000e-02, 1.250000e-01, 4.375000e-01, -5.000000e-01], [0.000000e+00, 1.875000e-01, -6.250000e-02, 4.375000e-01, 5.000000e-01, 3.750000e-01, -6.250000e-02, 4.375000e-01], [-4.375000e-01, 1.875000e-01, -2.500000e-01, -2.500000e-01, 1.875000e-01, 3.125000e-01, 4.375000e-01, -3.125000e-01], [3.750000e-01, 3.750000e-01, -1.875000e-01, -4.375000e-01, 3.125000e-01, 3.750000e-01, -6.250000e-02, -3.750000e-01], [-3.750000e-01, -1.250000e-01, 2.500000e-01, -1.875000e-01, -5.000000e-01, 1.875000e-01, 2.500000e-01, -3.125000e-01], [6.250000e-02, -1.250000e-01, 0.000000e+00, -5.000000e-01, 1.250000e-01, -2.500000e-01, 6.250000e-02, -6.250000e-02], [1.250000e-01, -4.375000e-01, -1.250000e-01, 1.250000e-01, 3.125000e-01, -1.250000e-01, -5.000000e-01, 2.500000e-01]]> : tensor<8x8xf16>
    %0 = tensor.empty() : tensor<16x8xf16>
    %transposed = linalg.transpose ins(%cst_1 : tensor<8x16xf16>) outs(%0 : tensor<16x8xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<16x8xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<16x16xf16>, tensor<16x8xf16>) outs(%2 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<16x8xf32>) outs(%0 : tensor<16x8xf16>) {
    ^bb0(%in: f32, %out: f16):
      %10 = arith.truncf %in : f32 to f16
      linalg.yield %10 : f16
    } -> tensor<16x8xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %cst_2 : tensor<16x8xf16>, tensor<8xf16>) outs(%0 : tensor<16x8xf16>) {
    ^bb0(%in: f16, %in_5: f16, %out: f16):
      %10 = arith.addf %in, %in_5 : f16
      linalg.yield %10 : f16
    } -> tensor<16x8xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<16x8xf16>) outs(%0 : tensor<16x8xf16>) {
    ^bb0(%in: f16, %out: f16):
      %10 = arith.cmpf ugt, %in, %cst_0 : f16
      %11 = arith.select %10, %in, %cst_0 : f16
      linalg.yield %11 : f16
    } -> tensor<16x8xf16>
    %7 = tensor.empty() : tensor<8x8xf16>
    %transposed_4 = linalg.transpose ins(%cst_3 : tensor<8x8xf16>) outs(%7 : tensor<8x8xf16>) permutation = [1, 0] 
    %8 = linalg.matmul ins(%6, %transposed_4 : tensor<16x8xf16>, tensor<8x8xf16>) outs(%2 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<16x8xf32>) outs(%0 : tensor<16x8xf16>) {
    ^bb0(%in: f32, %out: f16):
      %10 = arith.truncf %in : f32 to f16
      linalg.yield %10 : f16
    } -> tensor<16x8xf16>
    return %9 : tensor<16x8xf16>
  }
}
