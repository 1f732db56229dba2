// C = AB, 256 x 256 x 128, f16 x f16 -> f32, accumulated in f32.
func.func @matmul(%A: memref<256x128xf16>, %B: memref<128x256xf16>, %C: memref<256x256xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<256x128xf16> to tensor<256x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x256xf16> to tensor<128x256xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<256x256xf32> to tensor<256x256xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%c : tensor<256x256xf32>) -> tensor<256x256xf32>
  %product = linalg.matmul ins(%a, %b : tensor<256x128xf16>, tensor<128x256xf16>) outs(%start : tensor<256x256xf32>) -> tensor<256x256xf32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<256x256xf32>, memref<256x256xf32>) -> ()
  return
}
