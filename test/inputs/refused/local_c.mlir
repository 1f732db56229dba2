// C is not an argument.
func.func @matmul(%A: memref<256x128xf16>, %B: memref<128x256xf16>) {
  %C = memref.alloc() : memref<256x256xf32>
  linalg.matmul ins(%A, %B : memref<256x128xf16>, memref<128x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
