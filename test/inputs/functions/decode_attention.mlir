#q = affine_map<(b,h,s,t,d) -> (b,s,h,d)>
#k = affine_map<(b,h,s,t,d) -> (b,t,h,d)>
#o = affine_map<(b,h,s,t,d) -> (b,h,s,t)>
#v = affine_map<(b,h,s,d,t) -> (b,t,h,d)>
#p = affine_map<(b,h,s,d,t) -> (b,h,s,t)>
#r = affine_map<(b,h,s,d,t) -> (b,s,h,d)>
func.func @decode(%q: tensor<2x1x4x32xf16>, %k: tensor<2x40x4x32xf16>, %v: tensor<2x40x4x32xf16>) -> tensor<2x1x4x32xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x1x40xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x4x1x40xf32>) -> tensor<2x4x1x40xf32>
  %s = linalg.contract indexing_maps = [#q, #k, #o] ins(%q, %k : tensor<2x1x4x32xf16>, tensor<2x40x4x32xf16>) outs(%f : tensor<2x4x1x40xf32>) -> tensor<2x4x1x40xf32>
  %sm = linalg.softmax dimension(3) ins(%s : tensor<2x4x1x40xf32>) outs(%e : tensor<2x4x1x40xf32>) -> tensor<2x4x1x40xf32>
  %ph = arith.truncf %sm : tensor<2x4x1x40xf32> to tensor<2x4x1x40xf16>
  %e2 = tensor.empty() : tensor<2x1x4x32xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<2x1x4x32xf32>) -> tensor<2x1x4x32xf32>
  %y = linalg.contract indexing_maps = [#p, #v, #r] ins(%ph, %v : tensor<2x4x1x40xf16>, tensor<2x40x4x32xf16>) outs(%f2 : tensor<2x1x4x32xf32>) -> tensor<2x1x4x32xf32>
  %t = arith.truncf %y : tensor<2x1x4x32xf32> to tensor<2x1x4x32xf16>
  return %t : tensor<2x1x4x32xf16>
}
