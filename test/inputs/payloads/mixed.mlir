// C = AB + C, with A as a tensor and B and C as buffers.
func.func @matmul(%A: tensor<256x128xf16>, %B: memref<128x256xf16>, %C: memref<256x256xf32>) {
  %b = bufferization.to_tensor %B restrict : memref<128x256xf16> to tensor<128x256xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<256x256xf32> to tensor<256x256xf32>
  %product = linalg.matmul ins(%A, %b : tensor<256x128xf16>, tensor<128x256xf16>) outs(%c : tensor<256x256xf32>) -> tensor<256x256xf32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<256x256xf32>, memref<256x256xf32>) -> ()
  return
}
