func.func @f(%A: memref<128x32xf16>, %B: memref<32x128xf16>, %C: memref<128x128xf32>) {
  linalg.matmul ins(%A, %B : memref<128x32xf16>, memref<32x128xf16>) outs(%C : memref<128x128xf32>)
  return
}

// -----

func.func @f() -> index {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = arith.addi %c1, %c2 : index
  return %0 : index
}

// -----

func.func @f(%A: memref<?x32xf16>, %B: memref<32x128xf16>, %C: memref<?x128xf32>) {
  linalg.matmul ins(%A, %B : memref<?x32xf16>, memref<32x128xf16>) outs(%C : memref<?x128xf32>)
  return
}
