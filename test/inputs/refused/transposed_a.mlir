// A is read transposed.
func.func @matmul(%A: memref<128x256xf16>, %B: memref<128x256xf16>, %C: memref<256x256xf32>) {
  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%A, %B : memref<128x256xf16>, memref<128x256xf16>) outs(%C : memref<256x256xf32>)
  return
}
