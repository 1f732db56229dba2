// C = max(AB + bias, 0), rounded: named ops on tensors, as users write them.
func.func @matmul(%A: tensor<256x128xf16>, %B: tensor<128x256xf16>, %bias: tensor<256xf32>) -> tensor<256x256xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %p = linalg.matmul ins(%A, %B : tensor<256x128xf16>, tensor<128x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %rows = linalg.broadcast ins(%bias : tensor<256xf32>) outs(%e : tensor<256x256xf32>) dimensions = [0]
  %s = linalg.add ins(%p, %rows : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m = linalg.max ins(%s, %z : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %h = tensor.empty() : tensor<256x256xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<256x256xf32>) outs(%h : tensor<256x256xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<256x256xf16>
  return %r : tensor<256x256xf16>
}
