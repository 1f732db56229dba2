// A matmul of any number of rows.
func.func @matmul(%A: memref<?x128xf16>, %B: memref<128x256xf16>, %C: memref<?x256xf32>) {
  linalg.matmul ins(%A, %B : memref<?x128xf16>, memref<128x256xf16>) outs(%C : memref<?x256xf32>)
  return
}
