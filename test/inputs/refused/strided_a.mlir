// Elements of A's rows are two apart.
func.func @matmul(%A: memref<256x128xf16, strided<[512, 2]>>, %B: memref<128x256xf16>, %C: memref<256x256xf32>) {
  linalg.matmul ins(%A, %B : memref<256x128xf16, strided<[512, 2]>>, memref<128x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
