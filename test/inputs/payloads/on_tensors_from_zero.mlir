// C = AB, on tensors: the accumulator starts from a fill of nothing.
func.func @matmul(%A: tensor<256x128xf16>, %B: tensor<128x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %product = linalg.matmul ins(%A, %B : tensor<256x128xf16>, tensor<128x256xf16>)
                           outs(%start : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %product : tensor<256x256xf32>
}
