// The end of an attention of two sequences: the heads of each are side by side behind its rows.
#p = affine_map<(b, h, m, n, k) -> (b, h, m, k)>
#v = affine_map<(b, h, m, n, k) -> (b, h, k, n)>
#o = affine_map<(b, h, m, n, k) -> (b, h, m, n)>
func.func @context(%P: tensor<2x3x40x56xf16>, %V: tensor<2x3x56x24xf16>) -> tensor<2x40x72xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x40x24xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x40x24xf32>) -> tensor<2x3x40x24xf32>
  %c = linalg.contract indexing_maps = [#p, #v, #o] ins(%P, %V : tensor<2x3x40x56xf16>, tensor<2x3x56x24xf16>)
      outs(%z : tensor<2x3x40x24xf32>) -> tensor<2x3x40x24xf32>
  %f = tensor.empty() : tensor<2x40x3x24xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(b, m, h, n) -> (b, h, m, n)>,
      affine_map<(b, m, h, n) -> (b, m, h, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<2x3x40x24xf32>) outs(%f : tensor<2x40x3x24xf16>) {
  ^bb0(%in: f32, %out: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  } -> tensor<2x40x3x24xf16>
  %m = tensor.collapse_shape %t [[0], [1], [2, 3]] : tensor<2x40x3x24xf16> into tensor<2x40x72xf16>
  return %m : tensor<2x40x72xf16>
}
