// C = AB on tensors, accumulators of f32, rounded to f16: the form in which torch-mlir writes a matmul of f16.
func.func @matmul(%A: tensor<256x128xf16>, %B: tensor<128x256xf16>) -> tensor<256x256xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %p = linalg.matmul ins(%A, %B : tensor<256x128xf16>, tensor<128x256xf16>) outs(%s : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<256x256xf32>) outs(%e2 : tensor<256x256xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<256x256xf16>
  return %r : tensor<256x256xf16>
}
