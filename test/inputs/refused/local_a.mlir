// A is no argument.
func.func @matmul(%B: memref<128x256xf16>, %C: memref<256x256xf32>) {
  %A = memref.alloc() : memref<256x128xf16>
  linalg.matmul ins(%A, %B : memref<256x128xf16>, memref<128x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
