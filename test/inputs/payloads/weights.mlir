// Few rows by weights of 4 bits, each group of 128 with a scale and a zero point.

func.func @decode(%A: tensor<16x1024xf16>, %weights: tensor<512x8x128xi4>, %scales: tensor<512x8xf16>,
                  %zero_points: tensor<512x8xf16>) -> tensor<16x512xf32> {
  %e = tensor.empty() : tensor<512x8x128xf16>
  %groups = linalg.generic {indexing_maps = [affine_map<(n, g, k) -> (n, g, k)>, affine_map<(n, g, k) -> (n, g)>,
      affine_map<(n, g, k) -> (n, g)>, affine_map<(n, g, k) -> (n, g, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weights, %scales, %zero_points : tensor<512x8x128xi4>, tensor<512x8xf16>, tensor<512x8xf16>)
      outs(%e : tensor<512x8x128xf16>) {
  ^bb0(%weight: i4, %scale: f16, %zero_point: f16, %out: f16):
    %number = arith.extui %weight : i4 to i32
    %x = arith.uitofp %number : i32 to f16
    %d = arith.subf %x, %zero_point : f16
    %y = arith.mulf %d, %scale : f16
    linalg.yield %y : f16
  } -> tensor<512x8x128xf16>
  %B = tensor.collapse_shape %groups [[0], [1, 2]] : tensor<512x8x128xf16> into tensor<512x1024xf16>
  %zero = arith.constant 0.0 : f32
  %c = tensor.empty() : tensor<16x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<16x512xf32>) -> tensor<16x512xf32>
  %d = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<16x1024xf16>, tensor<512x1024xf16>) outs(%zeros : tensor<16x512xf32>) -> tensor<16x512xf32>
  return %d : tensor<16x512xf32>
}
