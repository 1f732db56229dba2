// C = AB + C, and arguments that nothing uses, among the others and behind them.
func.func @matmul(%A: memref<256x128xf16>, %x: f32, %B: memref<128x256xf16>, %C: memref<256x256xf32>, %i: index, %D: memref<4x4xf32>, %E: tensor<3xi8>) {
  linalg.matmul ins(%A, %B : memref<256x128xf16>, memref<128x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
