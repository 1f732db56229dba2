// C = AB + C, 256 x 256 x 128, f16 x f16 -> f16, accumulated in f16.
func.func @matmul(%A: memref<256x128xf16>, %B: memref<128x256xf16>, %C: memref<256x256xf16>) {
  %a = bufferization.to_tensor %A restrict : memref<256x128xf16> to tensor<256x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x256xf16> to tensor<128x256xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<256x256xf16> to tensor<256x256xf16>
  %product = linalg.matmul ins(%a, %b : tensor<256x128xf16>, tensor<128x256xf16>) outs(%c : tensor<256x256xf16>) -> tensor<256x256xf16>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<256x256xf16>, memref<256x256xf16>) -> ()
  return
}
