// C = AB of parts of buffers: A has rows with a pitch, B is a slice of a tensor, and C rows and columns of a buffer.
func.func @windows(%A: memref<70x40xf16, strided<[48, 1]>>, %B: tensor<64x128xf16>, %C: memref<100x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<70x40xf16, strided<[48, 1]>> to tensor<70x40xf16>
  %b = tensor.extract_slice %B[8, 16] [40, 72] [1, 1] : tensor<64x128xf16> to tensor<40x72xf16>
  %e = tensor.empty() : tensor<70x72xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<70x72xf32>) -> tensor<70x72xf32>
  %p = linalg.matmul ins(%a, %b : tensor<70x40xf16>, tensor<40x72xf16>) outs(%z : tensor<70x72xf32>)
      -> tensor<70x72xf32>
  %c = memref.subview %C[5, 8] [70, 72] [1, 1] : memref<100x128xf32> to memref<70x72xf32, strided<[128, 1], offset: 648>>
  bufferization.materialize_in_destination %p in restrict writable %c
      : (tensor<70x72xf32>, memref<70x72xf32, strided<[128, 1], offset: 648>>) -> ()
  return
}
