func.func @matmul(%A: memref<256x128xf16>, %B: memref<128x256xbf16>, %C: memref<256x256xf32>) {
  linalg.matmul ins(%A, %B : memref<256x128xf16>, memref<128x256xbf16>) outs(%C : memref<256x256xf32>)
  return
}
