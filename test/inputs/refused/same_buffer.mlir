// A is B.
func.func @matmul(%A: memref<256x256xf16>, %C: memref<256x256xf32>) {
  linalg.matmul ins(%A, %A : memref<256x256xf16>, memref<256x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
