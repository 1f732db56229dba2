func.func @matmul(%A: memref<256x128xi8>, %B: memref<128x256xi8>, %C: memref<256x256xi64>) {
  linalg.matmul ins(%A, %B : memref<256x128xi8>, memref<128x256xi8>) outs(%C : memref<256x256xi64>)
  return
}
