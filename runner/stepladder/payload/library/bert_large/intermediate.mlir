// C = AB + C, 3072 x 4096 x 1024, f16 x f16 -> f32, accumulated in f32.
func.func @matmul(%A: memref<3072x1024xf16>, %B: memref<1024x4096xf16>, %C: memref<3072x4096xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<3072x1024xf16> to tensor<3072x1024xf16>
  %b = bufferization.to_tensor %B restrict : memref<1024x4096xf16> to tensor<1024x4096xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<3072x4096xf32> to tensor<3072x4096xf32>
  %product = linalg.matmul ins(%a, %b : tensor<3072x1024xf16>, tensor<1024x4096xf16>) outs(%c : tensor<3072x4096xf32>) -> tensor<3072x4096xf32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<3072x4096xf32>, memref<3072x4096xf32>) -> ()
  return
}
