// The end of an attention of one sequence: the heads of the context, side by side behind its rows.
func.func @context(%P: tensor<3x40x56xf16>, %V: tensor<3x56x24xf16>) -> tensor<40x72xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x40x24xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40x24xf32>) -> tensor<3x40x24xf32>
  %o = linalg.batch_matmul ins(%P, %V : tensor<3x40x56xf16>, tensor<3x56x24xf16>) outs(%z : tensor<3x40x24xf32>)
      -> tensor<3x40x24xf32>
  %f = tensor.empty() : tensor<40x3x24xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(m, h, n) -> (h, m, n)>, affine_map<(m, h, n) -> (m, h, n)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%o : tensor<3x40x24xf32>) outs(%f : tensor<40x3x24xf16>) {
  ^bb0(%in: f32, %out: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  } -> tensor<40x3x24xf16>
  %m = tensor.collapse_shape %t [[0], [1, 2]] : tensor<40x3x24xf16> into tensor<40x72xf16>
  return %m : tensor<40x72xf16>
}
