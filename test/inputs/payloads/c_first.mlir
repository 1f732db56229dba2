// C = AB + C, with C as the first argument and B before A.
func.func @matmul(%C: memref<256x256xf32>, %B: memref<128x256xf16>, %A: memref<256x128xf16>) {
  linalg.matmul ins(%A, %B : memref<256x128xf16>, memref<128x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
