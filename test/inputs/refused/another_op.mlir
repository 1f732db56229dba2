// More than a matmul: the softmax of each row of the product.
func.func @matmul(%A: tensor<256x128xf16>, %B: tensor<128x256xf16>, %C: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %d = linalg.matmul ins(%A, %B : tensor<256x128xf16>, tensor<128x256xf16>) outs(%C : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e = linalg.softmax dimension(1) ins(%d : tensor<256x256xf32>) outs(%C : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %e : tensor<256x256xf32>
}
