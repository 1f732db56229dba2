// matmul
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul, A by its transpose in a map
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<96x32xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%A, %B : tensor<96x32xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul, B by its transpose in a map
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<64x96xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%A, %B : tensor<32x96xf16>, tensor<64x96xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul, both by their transposes
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<96x32xf16>, %B: tensor<64x96xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%A, %B : tensor<96x32xf16>, tensor<64x96xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul, one row of A for all
func.func @f(%A: tensor<96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: linalg.matmul indexes A with the map (d0, d1, d2) -> (d2); it must be (d0, d1, d2) -> (d0,
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%A, %B : tensor<96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul of unsigned numbers
// computes: C = f(AB), 32 x 64 x 64, i8 x i8 -> i32 (i32 accumulation), f: subi, subi, A prepared from 32x64xi8, B prepared from 64x64xi8 by xori, xori, xori, extsi, subi, muli, addi, xori, extsi, muli, addi; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%A, %B : tensor<32x64xi8>, tensor<64x64xi8>) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// a scale of 1
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.mulf %x, %one : f32
    linalg.yield %y : f32
  } -> tensor<32x64xf32>
  return %scaled : tensor<32x64xf32>
}

// -----

// matmul of i8
// computes: C = AB, 32 x 64 x 64, i8 x i8 -> i32 (i32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.matmul ins(%A, %B : tensor<32x64xi8>, tensor<64x64xi8>) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// matmul of bf16
// computes: C = AB, 32 x 64 x 96, bf16 x bf16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xbf16>, %B: tensor<96x64xbf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xbf16>, tensor<96x64xbf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul of f16, sums in f16
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f16 (f16 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<32x64xf16>
  %start = linalg.fill ins(%zero : f16) outs(%empty : tensor<32x64xf16>) -> tensor<32x64xf16>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf16>) -> tensor<32x64xf16>
  return %p : tensor<32x64xf16>
}

// -----

// matmul of f64
// computes: C = AB, 32 x 64 x 96, f64 x f64 -> f64 (f64 accumulation); on mma_sync
func.func @f(%A: tensor<32x96xf64>, %B: tensor<96x64xf64>) -> tensor<32x64xf64> {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<32x64xf64>
  %start = linalg.fill ins(%zero : f64) outs(%empty : tensor<32x64xf64>) -> tensor<32x64xf64>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf64>, tensor<96x64xf64>) outs(%start : tensor<32x64xf64>) -> tensor<32x64xf64>
  return %p : tensor<32x64xf64>
}

// -----

// matmul of f32
// computes: C = AB, 32 x 64 x 96, f32 x f32 -> f32 (f32 accumulation); on mma_sync, wgmma
func.func @f(%A: tensor<32x96xf32>, %B: tensor<96x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf32>, tensor<96x64xf32>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul of f16 and bf16
// computes: C = AB, 32 x 64 x 96, f16 x bf16 -> f32 (f32 accumulation); on none
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xbf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xbf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul of f16 and f32
// computes: C = AB, 32 x 64 x 96, f16 x f32 -> f32 (f32 accumulation); on none
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf32>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul of fp8
// computes: C = AB, 32 x 64 x 64, f8E4M3FN x f8E4M3FN -> f32 (f32 accumulation); on wgmma
func.func @f(%A: tensor<32x64xf8E4M3FN>, %B: tensor<64x64xf8E4M3FN>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// matmul of i16
// computes: C = AB, 32 x 64 x 96, i16 x i16 -> i32 (i32 accumulation); on none
func.func @f(%A: tensor<32x96xi16>, %B: tensor<96x64xi16>) -> tensor<32x64xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xi16>, tensor<96x64xi16>) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// matmul of i1
// computes: C = AB, 32 x 64 x 96, i1 x i1 -> i32 (i32 accumulation); on none
func.func @f(%A: tensor<32x96xi1>, %B: tensor<96x64xi1>) -> tensor<32x64xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xi1>, tensor<96x64xi1>) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// matmul of complex numbers
func.func @f(%A: tensor<32x96xcomplex<f32>>, %B: tensor<96x64xcomplex<f32>>, %C: tensor<32x64xcomplex<f32>>) -> tensor<32x64xcomplex<f32>> {
  // refused: linalg.matmul of complex<f32>, which kernels do not support
  %p = linalg.matmul ins(%A, %B : tensor<32x96xcomplex<f32>>, tensor<96x64xcomplex<f32>>) outs(%C : tensor<32x64xcomplex<f32>>) -> tensor<32x64xcomplex<f32>>
  return %p : tensor<32x64xcomplex<f32>>
}

// -----

// matmul of ui8, whose type has a sign
func.func @f(%A: tensor<32x96xui8>, %B: tensor<96x64xui8>, %C: tensor<32x64xui8>) -> tensor<32x64xui8> {
  // refused: a linalg op of ui8: upstream's arithmetic is of integers without a sign in their type
  %p = linalg.matmul ins(%A, %B : tensor<32x96xui8>, tensor<96x64xui8>) outs(%C : tensor<32x64xui8>) -> tensor<32x64xui8>
  return %p : tensor<32x64xui8>
}

// -----

// sums that start from -0.0
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant -0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  // refused: linalg.fill starts the accumulator from something other than the constant 0: -0.0
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// sums that start from one
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  // refused: linalg.fill starts the accumulator from something other than the constant 0: 1.0
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// sums that start from nothing
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %empty = tensor.empty() : tensor<32x64xf32>
  // refused: the initial value of linalg.matmul is tensor.empty
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// sums that start from a constant of zeros
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zeros = arith.constant dense<0.0> : tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// sums that start from C
// computes: C = AB + C, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %C: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%C : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// C before A and B
// computes: C = AB + C, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%C: tensor<32x64xf32>, %B: tensor<96x64xf16>, %A: tensor<32x96xf16>) -> tensor<32x64xf32> {
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%C : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// buffers
// computes: C = AB + C, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// buffers that start from zeros
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<32x64xf32>)
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// buffers in memory space 1
// refused: argument 0 is memref<32x96xf16, 1>; buffers must be in the default memory space
func.func @f(%A: memref<32x96xf16, 1>, %B: memref<96x64xf16, 1>, %C: memref<32x64xf32, 1>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16, 1>, memref<96x64xf16, 1>) outs(%C : memref<32x64xf32, 1>)
  return
}

// -----

// buffers in the GPU's global memory
// refused: argument 0 is memref<32x96xf16, #gpu.address_space<global>>; buffers must be in the default
func.func @f(%A: memref<32x96xf16, #gpu.address_space<global>>, %B: memref<96x64xf16, #gpu.address_space<global>>, %C: memref<32x64xf32, #gpu.address_space<global>>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16, #gpu.address_space<global>>, memref<96x64xf16, #gpu.address_space<global>>) outs(%C : memref<32x64xf32, #gpu.address_space<global>>)
  return
}

// -----

// a buffer in the GPU's shared memory
// refused: argument 0 is memref<32x96xf16, #gpu.address_space<workgroup>>; buffers must be in the default
func.func @f(%A: memref<32x96xf16, #gpu.address_space<workgroup>>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16, #gpu.address_space<workgroup>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// a buffer with a row pitch
// computes: C = AB + C, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A in 4064 from 0 on with pitches 128; on wmma, mma_sync, wgmma
func.func @f(%A: memref<32x96xf16, strided<[128, 1]>>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16, strided<[128, 1]>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// a buffer of unknown strides
// refused: argument 0 is memref<32x96xf16, strided<[?, ?], offset: ?>>; buffers must be row-major
func.func @f(%A: memref<32x96xf16, strided<[?, ?], offset: ?>>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16, strided<[?, ?], offset: ?>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// a column-major buffer by strides
// computes: C = AB + C, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A column-major; on wmma, mma_sync, wgmma
func.func @f(%A: memref<32x96xf16, strided<[1, 32]>>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16, strided<[1, 32]>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// a buffer that is written twice
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  // refused: 2 linalg.matmul ops in the payload; a pipeline accepts one (payload.mlir:3:3,
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// a part of a buffer
// computes: C = AB + C, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A in 64x96 from 3072 on with pitches 96; on wmma, mma_sync, wgmma
func.func @f(%A: memref<64x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  %part = memref.subview %A[32, 0] [32, 96] [1, 1] : memref<64x96xf16> to memref<32x96xf16, strided<[96, 1], offset: 3072>>
  linalg.matmul ins(%part, %B : memref<32x96xf16, strided<[96, 1], offset: 3072>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// C that is A
func.func @f(%A: memref<64x64xf16>, %B: memref<64x64xf16>) {
  // refused: linalg.matmul takes argument 0 as C and as A or B; C must be distinct
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%A : memref<64x64xf16>)
  return
}

// -----

// one buffer for A and B
// computes: C = AB + C, 64 x 64 x 64, f16 x f16 -> f32 (f32 accumulation), B is A's buffer; on wmma, mma_sync, wgmma
func.func @f(%A: memref<64x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %A : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// an allocated C that is returned
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>) -> memref<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  // refused: 'memref.alloc' beside linalg.matmul is not supported: a pipeline would drop it
  %C = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%C : memref<32x64xf32>)
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return %C : memref<32x64xf32>
}

// -----

// a C from memref.alloc that is copied out
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %D = memref.alloc() : memref<32x64xf32>
  linalg.fill ins(%zero : f32) outs(%D : memref<32x64xf32>)
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%D : memref<32x64xf32>)
  memref.copy %D, %C : memref<32x64xf32> to memref<32x64xf32>
  memref.dealloc %D : memref<32x64xf32>
  return
}

// -----

// unranked buffers
// refused: argument 0 is memref<*xf16>, a buffer of unknown rank
func.func @f(%A: memref<*xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  %a = memref.cast %A : memref<*xf16> to memref<32x96xf16>
  linalg.matmul ins(%a, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// matmul in a loop
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  %low = arith.constant 0 : index
  %high = arith.constant 4 : index
  %one = arith.constant 1 : index
  scf.for %i = %low to %high step %one {
    // refused: 4 linalg.matmul ops in the payload; a pipeline accepts one (payload.mlir:8:5)
    linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  }
  return
}

// -----

// matmul in a loop on tensors
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %C: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %low = arith.constant 0 : index
  %high = arith.constant 4 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %low to %high step %one iter_args(%c = %C) -> (tensor<32x64xf32>) {
    // refused: linalg.matmul is inside 'scf.for'; it must be at the top level of the function
    %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%c : tensor<32x64xf32>) -> tensor<32x64xf32>
    scf.yield %p : tensor<32x64xf32>
  }
  return %r : tensor<32x64xf32>
}

// -----

// matmul under a condition
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>, %on: i1) {
  scf.if %on {
    // refused: linalg.matmul is inside 'scf.if'
    linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  }
  return
}

// -----

// matmul in several blocks
// refused: the function has 3 blocks; it must have a single block
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>, %on: i1) {
  cf.cond_br %on, ^one, ^two
^one:
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  cf.br ^two
^two:
  return
}

// -----

// matvec
// computes: C = AB, 1 x 32 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %x: tensor<96xf16>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32xf32>) -> tensor<32xf32>
  %p = linalg.matvec ins(%A, %x : tensor<32x96xf16>, tensor<96xf16>) outs(%start : tensor<32xf32>) -> tensor<32xf32>
  return %p : tensor<32xf32>
}

// -----

// vecmat
// computes: C = AB, 1 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%x: tensor<96xf16>, %B: tensor<96x64xf16>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %p = linalg.vecmat ins(%x, %B : tensor<96xf16>, tensor<96x64xf16>) outs(%start : tensor<64xf32>) -> tensor<64xf32>
  return %p : tensor<64xf32>
}

// -----

// dot
// computes: C = AB, 1 x 1 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync
func.func @f(%x: tensor<96xf16>, %y: tensor<96xf16>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %p = linalg.dot ins(%x, %y : tensor<96xf16>, tensor<96xf16>) outs(%start : tensor<f32>) -> tensor<f32>
  return %p : tensor<f32>
}

// -----

// batch_matmul
// computes: C = AB, 3 x 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<3x32x96xf16>, %B: tensor<3x96x64xf16>) -> tensor<3x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<3x32x96xf16>, tensor<3x96x64xf16>) outs(%start : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  return %p : tensor<3x32x64xf32>
}

// -----

// batch_matmul, B by its transpose in a map
// computes: C = AB, 3 x 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<3x32x96xf16>, %B: tensor<3x64x96xf16>) -> tensor<3x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %p = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%A, %B : tensor<3x32x96xf16>, tensor<3x64x96xf16>) outs(%start : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  return %p : tensor<3x32x64xf32>
}

// -----

// batch_matmul, one B for all
// computes: C = AB, 3 x 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B broadcast; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<3x32x96xf16>, %B: tensor<96x64xf16>) -> tensor<3x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %p = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%A, %B : tensor<3x32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  return %p : tensor<3x32x64xf32>
}

// -----

// batch_matmul with rows of 1
// computes: C = AB, 3 x 1 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on none
func.func @f(%A: tensor<3x1x96xf16>, %B: tensor<3x96x64xf16>) -> tensor<3x1x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x1x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x1x64xf32>) -> tensor<3x1x64xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<3x1x96xf16>, tensor<3x96x64xf16>) outs(%start : tensor<3x1x64xf32>) -> tensor<3x1x64xf32>
  return %p : tensor<3x1x64xf32>
}

// -----

// batch_matvec
// computes: C = AB, 3 x 1 x 32 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; on none
func.func @f(%A: tensor<3x32x96xf16>, %B: tensor<3x96xf16>) -> tensor<3x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32xf32>) -> tensor<3x32xf32>
  %p = linalg.batch_matvec ins(%A, %B : tensor<3x32x96xf16>, tensor<3x96xf16>) outs(%start : tensor<3x32xf32>) -> tensor<3x32xf32>
  return %p : tensor<3x32xf32>
}

// -----

// batch_vecmat
// computes: C = AB, 3 x 1 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on none
func.func @f(%A: tensor<3x96xf16>, %B: tensor<3x96x64xf16>) -> tensor<3x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x64xf32>) -> tensor<3x64xf32>
  %p = linalg.batch_vecmat ins(%A, %B : tensor<3x96xf16>, tensor<3x96x64xf16>) outs(%start : tensor<3x64xf32>) -> tensor<3x64xf32>
  return %p : tensor<3x64xf32>
}

// -----

// batch_reduce_matmul
func.func @f(%A: tensor<3x32x96xf16>, %B: tensor<3x96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: linalg.batch_reduce_matmul: the dimensions of A are in an order that is neither row- nor
  %p = linalg.batch_reduce_matmul ins(%A, %B : tensor<3x32x96xf16>, tensor<3x96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// mmt4d
func.func @f(%A: tensor<2x3x8x32xf16>, %B: tensor<4x3x8x32xf16>) -> tensor<2x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x4x8x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // refused: linalg.mmt4d: the dimensions of C are in an order that is neither row- nor column-major
  %p = linalg.mmt4d ins(%A, %B : tensor<2x3x8x32xf16>, tensor<4x3x8x32xf16>) outs(%start : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %p : tensor<2x4x8x8xf32>
}

// -----

// batch_mmt4d
func.func @f(%A: tensor<2x1x3x32x32xf16>, %B: tensor<2x1x3x64x32xf16>) -> tensor<2x1x1x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x1x1x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x1x1x32x64xf32>) -> tensor<2x1x1x32x64xf32>
  // refused: linalg.batch_mmt4d: the dimensions of A are in an order that is neither row- nor
  %p = linalg.batch_mmt4d ins(%A, %B : tensor<2x1x3x32x32xf16>, tensor<2x1x3x64x32xf16>) outs(%start : tensor<2x1x1x32x64xf32>) -> tensor<2x1x1x32x64xf32>
  return %p : tensor<2x1x1x32x64xf32>
}

// -----

// quantized_matmul with zero points of 0
// computes: C = AB, 32 x 64 x 64, i8 x i8 -> i32 (i32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi32> {
  %za = arith.constant 0 : i32
  %zb = arith.constant 0 : i32
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.quantized_matmul ins(%A, %B, %za, %zb : tensor<32x64xi8>, tensor<64x64xi8>, i32, i32) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// quantized_matmul
// computes: C = f(AB), 32 x 64 x 64, i8 x i8 -> i32 (i32 accumulation), f: subi, subi, sums of A or B prepared by extsi, subi, muli, addi, extsi, muli, addi; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi32> {
  %za = arith.constant 3 : i32
  %zb = arith.constant -5 : i32
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.quantized_matmul ins(%A, %B, %za, %zb : tensor<32x64xi8>, tensor<64x64xi8>, i32, i32) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// quantized_matmul of torch-mlir, activations of quint8 and a result of qint8
// computes: C = f(AB), 32 x 64 x 64, i8 x i8 -> i8 (i32 accumulation), f: subi, sitofp, mulf, roundeven, addf, maximumf, minimumf, fptosi, A prepared from 32x64xi8 by addi, extsi, muli, addi; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi8> {
  %c-128_i8 = arith.constant -128 : i8
  %za = arith.constant 3 : i32
  %zb = arith.constant 0 : i32
  %zero = arith.constant 0 : i32
  %scale = arith.constant 3.0e-03 : f32
  %point = arith.constant 1.0e+01 : f32
  %low = arith.constant -1.28e+02 : f32
  %high = arith.constant 1.27e+02 : f32
  %a_empty = tensor.empty() : tensor<32x64xi8>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<32x64xi8>) outs(%a_empty : tensor<32x64xi8>) {
  ^bb0(%in: i8, %out: i8):
    %r = arith.addi %in, %c-128_i8 : i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.quantized_matmul ins(%a, %B, %za, %zb : tensor<32x64xi8>, tensor<64x64xi8>, i32, i32) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  %q_empty = tensor.empty() : tensor<32x64xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<32x64xi32>) outs(%q_empty : tensor<32x64xi8>) {
  ^bb0(%in: i32, %out: i8):
    %f = arith.sitofp %in : i32 to f32
    %s = arith.mulf %f, %scale : f32
    %n = math.roundeven %s : f32
    %z = arith.addf %n, %point : f32
    %l = arith.maximumf %z, %low : f32
    %h = arith.minimumf %l, %high : f32
    %r = arith.fptosi %h : f32 to i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  return %q : tensor<32x64xi8>
}

// -----

// zero points in ops of i16 and i32, a transposed weight
// computes: C = f(AB), 32 x 64 x 64, i8 x i8 -> i32 (i32 accumulation), B column-major, f: subi, subi, A prepared from 32x64xi8 by xori, xori, extsi, subi, muli, addi, extsi, muli, addi; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi32> {
  %zero = arith.constant 0 : i32
  %za = arith.constant 12 : i16
  %zb = arith.constant dense<-7> : tensor<64x64xi32>
  %a_empty = tensor.empty() : tensor<32x64xi32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<32x64xi8>) outs(%a_empty : tensor<32x64xi32>) {
  ^bb0(%in: i8, %out: i32):
    %w = arith.extui %in : i8 to i16
    %d = arith.subi %w, %za : i16
    %r = arith.extsi %d : i16 to i32
    linalg.yield %r : i32
  } -> tensor<32x64xi32>
  %b_empty = tensor.empty() : tensor<64x64xi32>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%B : tensor<64x64xi8>) outs(%b_empty : tensor<64x64xi32>) {
  ^bb0(%in: i8, %out: i32):
    %r = arith.extsi %in : i8 to i32
    linalg.yield %r : i32
  } -> tensor<64x64xi32>
  %shifted = linalg.sub ins(%wide, %zb : tensor<64x64xi32>, tensor<64x64xi32>) outs(%b_empty : tensor<64x64xi32>) -> tensor<64x64xi32>
  %b = linalg.transpose ins(%shifted : tensor<64x64xi32>) outs(%b_empty : tensor<64x64xi32>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.matmul ins(%a, %b : tensor<32x64xi32>, tensor<64x64xi32>) outs(%start : tensor<32x64xi32>) -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// zero points of numbers that wrap in i16
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>) -> tensor<32x64xi32> {
  %zero = arith.constant 0 : i32
  %za = arith.constant 32700 : i16
  %empty = tensor.empty() : tensor<32x64xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<32x64xi32>) -> tensor<32x64xi32>
  // refused: linalg.generic is not a contraction: it does not add products of two operands, possibly
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<32x64xi8>, tensor<64x64xi8>) outs(%start : tensor<32x64xi32>) {
  ^bb0(%x: i8, %y: i8, %t: i32):
    %u = arith.extsi %x : i8 to i16
    %d = arith.subi %u, %za : i16
    %v = arith.extsi %d : i16 to i32
    %w = arith.extsi %y : i8 to i32
    %q = arith.muli %v, %w : i32
    %s = arith.addi %t, %q : i32
    linalg.yield %s : i32
  } -> tensor<32x64xi32>
  return %p : tensor<32x64xi32>
}

// -----

// groups of i4 with scales and zero points, the group as a second reduction
// computes: C = AB, 32 x 48 x 64, f16 x f16 -> f32 (f32 accumulation), B column-major, B prepared from 48x2x16xi8 by index, index_cast, muli, shrui, trunci, extui, uitofp, subf, mulf with D0 (48x2xf16), D1 (48x2xf16); on wmma, mma_sync, wgmma
#whole = affine_map<(n, g, k) -> (n, g, k)>
#group = affine_map<(n, g, k) -> (n, g)>
func.func @f(%A: tensor<32x2x32xf16>, %Q: tensor<48x2x32xi4>, %S: tensor<48x2xf16>, %Z: tensor<48x2xf16>) -> tensor<32x48xf32> {
  %zero = arith.constant 0.0 : f32
  %be = tensor.empty() : tensor<48x2x32xf16>
  %b = linalg.generic {indexing_maps = [#whole, #group, #group, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%Q, %S, %Z : tensor<48x2x32xi4>, tensor<48x2xf16>, tensor<48x2xf16>) outs(%be : tensor<48x2x32xf16>) {
  ^bb0(%q: i4, %s: f16, %z: f16, %o: f16):
    %e = arith.extui %q : i4 to i32
    %x = arith.uitofp %e : i32 to f16
    %d = arith.subf %x, %z : f16
    %y = arith.mulf %d, %s : f16
    linalg.yield %y : f16
  } -> tensor<48x2x32xf16>
  %e = tensor.empty() : tensor<32x48xf32>
  %st = linalg.fill ins(%zero : f32) outs(%e : tensor<32x48xf32>) -> tensor<32x48xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, g, k) -> (m, g, k)>, affine_map<(m, n, g, k) -> (n, g, k)>, affine_map<(m, n, g, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%A, %b : tensor<32x2x32xf16>, tensor<48x2x32xf16>) outs(%st : tensor<32x48xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %o, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x48xf32>
  return %p : tensor<32x48xf32>
}

// -----

// weights of 4 bits in i32 as GPTQ packs them, zero points in another order, groups of rows
// computes: C = AB, 32 x 48 x 64, f16 x f16 -> f16 (f32 accumulation), B prepared from 8x48xi32 by muli, index, index_cast, addi, cmpi, select, cmpi, select, cmpi, select, cmpi, select, cmpi, select, cmpi, select, cmpi, select, shrsi, andi, addi, muli, index, index_cast, addi, muli, addi, shrsi, andi, subi, sitofp, mulf with D0 (2x6xi32), D1 (2x48xf16); on wmma, mma_sync, wgmma
#packed = affine_map<(g, t, n) -> (g, n)>
#shift = affine_map<(g, t, n) -> (t)>
#whole = affine_map<(g, t, n) -> (g, t, n)>
#zpacked = affine_map<(g, n, t) -> (g, n)>
#zshift = affine_map<(g, n, t) -> (t)>
#scale = affine_map<(g, k, n) -> (g, n)>
func.func @f(%A: tensor<32x64xf16>, %Q: tensor<8x48xi32>, %Z: tensor<2x6xi32>, %S: tensor<2x48xf16>) -> tensor<32x48xf16> {
  %wf = arith.constant dense<[0, 4, 8, 12, 16, 20, 24, 28]> : tensor<8xi32>
  %awq = arith.constant dense<[0, 16, 4, 20, 8, 24, 12, 28]> : tensor<8xi32>
  %mask = arith.constant 15 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %ze = tensor.empty() : tensor<2x6x8xi32>
  %z = linalg.generic {indexing_maps = [#zpacked, #zshift, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%Z, %awq : tensor<2x6xi32>, tensor<8xi32>) outs(%ze : tensor<2x6x8xi32>) {
  ^bb0(%v: i32, %s: i32, %o: i32):
    %y = arith.shrsi %v, %s : i32
    %r = arith.andi %y, %mask : i32
    %u = arith.addi %r, %one : i32
    linalg.yield %u : i32
  } -> tensor<2x6x8xi32>
  %zs = tensor.collapse_shape %z [[0], [1, 2]] : tensor<2x6x8xi32> into tensor<2x48xi32>
  %qe = tensor.empty() : tensor<8x8x48xi32>
  %q = linalg.generic {indexing_maps = [#packed, #shift, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%Q, %wf : tensor<8x48xi32>, tensor<8xi32>) outs(%qe : tensor<8x8x48xi32>) {
  ^bb0(%v: i32, %s: i32, %o: i32):
    %y = arith.shrsi %v, %s : i32
    %r = arith.andi %y, %mask : i32
    linalg.yield %r : i32
  } -> tensor<8x8x48xi32>
  %flat = tensor.collapse_shape %q [[0, 1], [2]] : tensor<8x8x48xi32> into tensor<64x48xi32>
  %grouped = tensor.expand_shape %flat [[0, 1], [2]] output_shape [2, 32, 48] : tensor<64x48xi32> into tensor<2x32x48xi32>
  %be = tensor.empty() : tensor<2x32x48xf16>
  %b = linalg.generic {indexing_maps = [#whole, #scale, #scale, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%grouped, %zs, %S : tensor<2x32x48xi32>, tensor<2x48xi32>, tensor<2x48xf16>) outs(%be : tensor<2x32x48xf16>) {
  ^bb0(%v: i32, %z0: i32, %s: f16, %o: f16):
    %d = arith.subi %v, %z0 : i32
    %x = arith.sitofp %d : i32 to f16
    %y = arith.mulf %x, %s : f16
    linalg.yield %y : f16
  } -> tensor<2x32x48xf16>
  %w = tensor.collapse_shape %b [[0, 1], [2]] : tensor<2x32x48xf16> into tensor<64x48xf16>
  %e = tensor.empty() : tensor<32x48xf32>
  %st = linalg.fill ins(%zero : f32) outs(%e : tensor<32x48xf32>) -> tensor<32x48xf32>
  %p = linalg.matmul ins(%A, %w : tensor<32x64xf16>, tensor<64x48xf16>) outs(%st : tensor<32x48xf32>) -> tensor<32x48xf32>
  %he = tensor.empty() : tensor<32x48xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<32x48xf32>) outs(%he : tensor<32x48xf16>) {
  ^bb0(%x: f32, %o: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<32x48xf16>
  return %h : tensor<32x48xf16>
}

// -----

// conv_2d of 1x1
// computes: C = AB, 16 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<1x4x4x96xf16>, %B: tensor<1x1x96x64xf16>) -> tensor<1x4x4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x4x4x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x4x64xf32>) -> tensor<1x4x4x64xf32>
  %p = linalg.conv_2d_nhwc_hwcf ins(%A, %B : tensor<1x4x4x96xf16>, tensor<1x1x96x64xf16>) outs(%start : tensor<1x4x4x64xf32>) -> tensor<1x4x4x64xf32>
  return %p : tensor<1x4x4x64xf32>
}

// -----

// contract, loops m n k
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// contract, loops k n m
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (k, n)>, affine_map<(k, n, m) -> (m, n)>] ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic, loops m n k
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic, loops m k n
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, k, n) -> (m, k)>, affine_map<(m, k, n) -> (k, n)>, affine_map<(m, k, n) -> (m, n)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic, loops n m k
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(n, m, k) -> (m, k)>, affine_map<(n, m, k) -> (k, n)>, affine_map<(n, m, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic, loops n k m
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(n, k, m) -> (m, k)>, affine_map<(n, k, m) -> (k, n)>, affine_map<(n, k, m) -> (m, n)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic, loops k m n
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(k, m, n) -> (m, k)>, affine_map<(k, m, n) -> (k, n)>, affine_map<(k, m, n) -> (m, n)>],
      iterator_types = ["reduction", "parallel", "parallel"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic, loops k n m
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (k, n)>, affine_map<(k, n, m) -> (m, n)>],
      iterator_types = ["reduction", "parallel", "parallel"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic with a transposed C
// computes: C = AB, 64 x 32 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<64x32xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x32xf32>
  return %p : tensor<64x32xf32>
}

// -----

// generic with f16 products
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: linalg.generic is not a contraction: it does not add products of two operands, possibly
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %w = arith.mulf %x, %y : f16
    %e = arith.extf %w : f16 to f32
    %s = arith.addf %z, %e : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic with an fma
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %s = math.fma %u, %v, %z : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic with a fast-math flag
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v fastmath<contract> : f32
    %s = arith.addf %z, %w fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic of products alone
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: linalg.generic is not a contraction: it does not add products of two operands, possibly
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %s = arith.mulf %u, %v : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// generic of greatest products
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: linalg.generic is not a contraction: it does not add products of two operands, possibly
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.maximumf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// contract with the heads in m
// computes: C = AB, 4 x 4 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B broadcast; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<4x4x96xf16>, %B: tensor<96x64xf16>) -> tensor<4x4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4x64xf32>) -> tensor<4x4x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(i, j, n, k) -> (i, j, k)>, affine_map<(i, j, n, k) -> (k, n)>, affine_map<(i, j, n, k) -> (i, j, n)>] ins(%A, %B : tensor<4x4x96xf16>, tensor<96x64xf16>) outs(%start : tensor<4x4x64xf32>) -> tensor<4x4x64xf32>
  return %p : tensor<4x4x64xf32>
}

// -----

// contract of attention, queries and keys
// computes: C = AB, 3 x 32 x 64 x 32, f16 x f16 -> f32 (f32 accumulation), B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<3x32x32xf16>, %B: tensor<3x64x32xf16>) -> tensor<3x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(h, m, n, k) -> (h, m, k)>, affine_map<(h, m, n, k) -> (h, n, k)>, affine_map<(h, m, n, k) -> (h, m, n)>] ins(%A, %B : tensor<3x32x32xf16>, tensor<3x64x32xf16>) outs(%start : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  return %p : tensor<3x32x64xf32>
}

// -----

// contract with the heads behind the rows
// computes: C = AB, 3 x 32 x 64 x 32, f16 x f16 -> f32 (f32 accumulation), B column-major, A in 32x3x32 from 0 on with pitches 32x96, B in 64x3x32 from 0 on with pitches 32x96; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x3x32xf16>, %B: tensor<64x3x32xf16>) -> tensor<3x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(h, m, n, k) -> (m, h, k)>, affine_map<(h, m, n, k) -> (n, h, k)>, affine_map<(h, m, n, k) -> (h, m, n)>] ins(%A, %B : tensor<32x3x32xf16>, tensor<64x3x32xf16>) outs(%start : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  return %p : tensor<3x32x64xf32>
}

// -----

// a transposed weight
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %W: tensor<64x96xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e = tensor.empty() : tensor<96x64xf16>
  %w = linalg.transpose ins(%W : tensor<64x96xf16>) outs(%e : tensor<96x64xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%A, %w : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a transposed result
// computes: C = AB, 64 x 32 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %t = linalg.transpose ins(%p : tensor<32x64xf32>) outs(%e : tensor<64x32xf32>) permutation = [1, 0]
  return %t : tensor<64x32xf32>
}

// -----

// three dimensions, collapsed and expanded
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<4x8x96xf16>, %B: tensor<96x64xf16>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %a = tensor.collapse_shape %A [[0, 1], [2]] : tensor<4x8x96xf16> into tensor<32x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [4, 8, 64] : tensor<32x64xf32> into tensor<4x8x64xf32>
  return %r : tensor<4x8x64xf32>
}

// -----

// rows of a larger tensor
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A in 64x96 from 3072 on with pitches 96; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %a = tensor.extract_slice %A[32, 0] [32, 96] [1, 1] : tensor<64x96xf16> to tensor<32x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a slice that takes everything
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<1x32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %a = tensor.extract_slice %A[0, 0, 0] [1, 32, 96] [1, 1, 1] : tensor<1x32x96xf16> to tensor<32x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// the result inserted in a larger tensor
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %D: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: 'tensor.insert_slice' beside linalg.matmul is not supported: a pipeline would drop it
  %r = tensor.insert_slice %p into %D[32, 0] [32, 64] [1, 1] : tensor<32x64xf32> into tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// a padded A
func.func @f(%A: tensor<31x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %h = arith.constant 0.0 : f16
  // refused: 'tensor.pad' beside linalg.matmul is not supported: a pipeline would drop it
  %a = tensor.pad %A low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %h : f16
  } : tensor<31x96xf16> to tensor<32x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a weight repeated over a batch
// computes: C = AB, 96 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<3x32x96xf16>, %B: tensor<96x64xf16>) -> tensor<3x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %e = tensor.empty() : tensor<3x96x64xf16>
  %b = linalg.broadcast ins(%B : tensor<96x64xf16>) outs(%e : tensor<3x96x64xf16>) dimensions = [0]
  %p = linalg.batch_matmul ins(%A, %b : tensor<3x32x96xf16>, tensor<3x96x64xf16>) outs(%start : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  return %p : tensor<3x32x64xf32>
}

// -----

// A reshaped by a reassociation that does not nest
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<96x32xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %a = tensor.collapse_shape %A [[0, 1]] : tensor<96x32xf16> into tensor<3072xf16>
  %b = tensor.expand_shape %a [[0, 1]] output_shape [32, 96] : tensor<3072xf16> into tensor<32x96xf16>
  %p = linalg.matmul ins(%b, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a weight as a constant
// computes: C = AB, 32 x 32 x 32, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x32xf16>) -> tensor<32x32xf32> {
  %W = arith.constant dense<[[0.0, 2.0, -1.0, 0.5, -1.0, 1.0, 1.0, 1.0, 1.0, 0.0, -1.0, 1.0, -1.0, 1.0, 1.0, 2.0, -1.0, 1.0, 0.5, 0.0, 2.0, -1.0, 0.5, -1.0, -1.0, -1.0, 2.0, -1.0, 1.0, 0.0, 1.0, -1.0], [2.0, 0.0, 1.0, 1.0, 2.0, 0.0, 0.5, 0.0, 0.0, 1.0, 0.5, -1.0, 1.0, 2.0, -1.0, 0.0, 0.5, -1.0, 0.5, 2.0, 1.0, 2.0, 0.0, 0.5, 0.5, 2.0, 1.0, 2.0, 1.0, 2.0, -1.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.5, 2.0, 0.5, -1.0, 1.0, 2.0, -1.0, 0.0, 2.0, 1.0, 0.5, 1.0, -1.0, 1.0, -1.0, 0.5, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0, 2.0, 0.0, -1.0, 0.0, 2.0, 2.0], [0.0, 1.0, 2.0, 0.5, 2.0, 0.5, 1.0, 0.5, 2.0, 2.0, -1.0, 1.0, 2.0, 0.0, 2.0, 2.0, 0.0, 1.0, -1.0, 1.0, 0.5, 2.0, 2.0, 0.0, 2.0, 1.0, 1.0, 0.5, 1.0, 0.5, -1.0, 2.0], [2.0, 2.0, 2.0, 0.5, 1.0, 2.0, -1.0, 0.0, 0.0, 2.0, 2.0, 0.0, -1.0, 2.0, 0.5, -1.0, -1.0, -1.0, -1.0, 1.0, -1.0, 0.5, 0.0, 0.5, -1.0, 2.0, 0.0, 0.5, 0.5, -1.0, 0.0, 0.0], [0.5, 2.0, 0.0, 0.5, 0.5, 1.0, 0.5, 1.0, 1.0, -1.0, -1.0, 0.5, 1.0, 0.5, 1.0, 0.0, 0.5, -1.0, 0.5, 2.0, 0.0, 2.0, 1.0, -1.0, 0.0, -1.0, 1.0, 0.0, -1.0, 0.0, 1.0, 2.0], [1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 2.0, -1.0, 1.0, 2.0, 0.5, 1.0, -1.0, 0.5, 0.0, 0.0, -1.0, 0.5, -1.0, -1.0, 0.5, 0.5, 0.0, 1.0, 2.0, 0.5, 0.0, -1.0, 2.0, -1.0, 2.0, 0.0], [2.0, 1.0, 0.0, 2.0, 2.0, -1.0, 1.0, 0.0, 0.5, -1.0, 0.0, 2.0, 1.0, 2.0, 0.0, 1.0, -1.0, 1.0, 0.5, 2.0, 1.0, -1.0, 0.5, 2.0, 1.0, 0.5, -1.0, 0.0, 0.0, 0.5, 2.0, 0.0], [0.5, 1.0, 0.0, 0.5, -1.0, 1.0, 2.0, 0.5, 2.0, 1.0, 2.0, 0.0, -1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.5, 0.5, 2.0, 2.0, 0.5, 0.5, 0.5, 0.5, -1.0, 0.5, 0.0, 2.0], [1.0, 0.0, 2.0, 2.0, -1.0, 0.5, -1.0, 1.0, -1.0, 1.0, 0.0, 0.0, 0.5, -1.0, 2.0, 2.0, 1.0, -1.0, 2.0, 2.0, 0.0, 2.0, -1.0, 0.5, 0.5, 0.5, 2.0, 2.0, -1.0, 1.0, 0.5, -1.0], [-1.0, 0.5, -1.0, 2.0, -1.0, -1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 2.0, 1.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, -1.0, 1.0, 1.0, 2.0, 0.5, 2.0, 0.5, 1.0, 0.5, -1.0, 0.0, 0.5, -1.0], [-1.0, -1.0, 0.5, 2.0, 0.5, 1.0, 1.0, 0.5, 1.0, -1.0, -1.0, 0.5, 2.0, 1.0, -1.0, 0.5, 0.0, 2.0, 2.0, 1.0, 0.5, 0.5, 0.0, 2.0, 0.0, 0.5, 0.0, 0.0, 0.5, -1.0, 0.5, -1.0], [1.0, -1.0, 2.0, 0.5, 0.0, 1.0, 0.5, -1.0, 0.5, 0.0, 0.5, 2.0, 0.5, 0.0, 0.5, -1.0, 2.0, 2.0, 2.0, 2.0, -1.0, 0.0, 0.0, -1.0, 0.0, 1.0, -1.0, 0.5, 2.0, -1.0, -1.0, -1.0], [-1.0, 0.5, 0.5, 1.0, 1.0, 0.0, -1.0, 2.0, 0.5, -1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5, -1.0, 2.0, 2.0, 0.5, 0.0, 0.0, 0.0, 2.0, -1.0, 0.5, 2.0, 2.0, 0.0, 0.0, 0.5], [1.0, 2.0, 0.0, -1.0, 0.0, 0.5, -1.0, 1.0, 1.0, 2.0, 0.5, 2.0, 1.0, 2.0, 1.0, -1.0, 1.0, 0.5, 0.0, 0.5, 1.0, -1.0, 1.0, 2.0, -1.0, -1.0, 0.5, 2.0, 0.0, 2.0, 0.0, 0.0], [0.5, 0.5, 1.0, 2.0, 1.0, 0.0, 2.0, -1.0, 0.0, 1.0, -1.0, 0.0, 2.0, 0.5, 2.0, 1.0, 0.0, 0.0, 0.5, 1.0, 1.0, 0.0, 1.0, 0.5, 2.0, 2.0, 0.5, 0.0, -1.0, -1.0, 2.0, 0.5], [0.0, 2.0, 0.0, 0.5, 0.5, 0.5, 2.0, 0.5, 0.0, 1.0, 2.0, -1.0, -1.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.5, 1.0, 0.0, 2.0, -1.0, 1.0, 1.0, 0.5, 1.0, 2.0, 0.0, 2.0, -1.0], [2.0, -1.0, 0.5, -1.0, 0.5, -1.0, 0.0, 2.0, -1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.5, 1.0, 0.0, 2.0, 1.0, 0.0, -1.0, 1.0, 2.0, 2.0, 1.0, -1.0, 0.5, 0.5, 0.0, 1.0, 2.0], [-1.0, 0.0, 2.0, 1.0, 2.0, -1.0, -1.0, 2.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 2.0, 0.0, 0.5, 0.5, 2.0, 0.5, 1.0, 0.0, 2.0, 0.5, 1.0, 1.0, -1.0, 0.0, 2.0, 1.0, 0.0, 0.5], [-1.0, -1.0, -1.0, 2.0, -1.0, 2.0, 0.5, 0.0, -1.0, 2.0, 0.5, 2.0, 0.5, 1.0, 2.0, 0.5, 2.0, 0.5, -1.0, -1.0, 1.0, 1.0, 0.5, 0.5, 2.0, 1.0, 0.5, 2.0, 1.0, -1.0, 1.0, 1.0], [0.0, 2.0, -1.0, 0.5, 2.0, 2.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.5, 0.0, 1.0, 2.0, 2.0, 0.0, 0.5, 2.0, -1.0, 1.0, 2.0, 1.0, 1.0, 0.5, 2.0, 2.0, -1.0, 1.0, 0.0, 0.5, -1.0], [1.0, 0.0, 1.0, 0.5, 0.0, -1.0, 2.0, -1.0, 0.5, 0.5, 1.0, 2.0, 0.5, 0.0, 1.0, 0.5, 1.0, 0.0, 1.0, 2.0, -1.0, 0.5, 2.0, -1.0, 2.0, 1.0, -1.0, 0.5, -1.0, 1.0, -1.0, 0.0], [2.0, 0.0, -1.0, 1.0, 0.5, 2.0, 0.5, 0.0, 2.0, 0.0, 0.0, 0.5, 0.5, -1.0, -1.0, 2.0, 0.5, 1.0, 2.0, 2.0, -1.0, 0.0, 0.5, 2.0, 0.5, 0.5, 2.0, 0.0, 1.0, 2.0, 1.0, 0.0], [1.0, 0.5, 2.0, 0.5, 0.0, 0.5, 2.0, 0.0, -1.0, 2.0, 1.0, 0.5, 1.0, 0.0, 0.5, 0.0, -1.0, 0.0, 2.0, 1.0, 2.0, 0.0, 2.0, 0.5, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.5], [1.0, 0.0, -1.0, 0.0, 0.5, -1.0, -1.0, 0.0, 1.0, 0.5, 1.0, -1.0, 0.0, -1.0, -1.0, 2.0, -1.0, 0.0, -1.0, 1.0, 2.0, 2.0, 1.0, 0.5, 0.5, -1.0, 2.0, 0.0, -1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 2.0, 1.0, 0.0, 1.0, 0.5, 0.5, 1.0, 2.0, -1.0, 0.0, -1.0, -1.0, -1.0, -1.0, 1.0, 0.5, 1.0, 2.0, 0.5, 0.0, 1.0, 0.0, 0.0], [-1.0, -1.0, 1.0, 0.0, 2.0, -1.0, 2.0, 1.0, 0.5, 0.0, -1.0, 1.0, 0.5, -1.0, -1.0, 2.0, -1.0, 2.0, 0.0, -1.0, 0.5, -1.0, 1.0, -1.0, 0.0, -1.0, 1.0, 0.0, 0.5, 0.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.0, 0.0, -1.0, 2.0, 2.0, 0.0, 0.5, 1.0, 2.0, 2.0, 2.0, -1.0, 0.5, 2.0, 1.0, 2.0, 0.0, 2.0, 1.0, -1.0, 0.5, 2.0, -1.0, 0.5, 0.0, -1.0, 0.0, -1.0, 0.0], [1.0, -1.0, -1.0, -1.0, 2.0, 1.0, 2.0, 0.5, -1.0, 0.5, -1.0, 0.0, 2.0, -1.0, 1.0, 0.0, 1.0, 1.0, -1.0, 2.0, 0.5, -1.0, 0.5, 0.5, -1.0, 0.5, -1.0, 1.0, -1.0, 0.5, 0.5, 0.0], [0.5, 1.0, -1.0, 0.5, -1.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.5, 0.5, 2.0, 1.0, 2.0, 1.0, -1.0, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, -1.0, 0.5, 0.0, 0.0, 0.5, 1.0, 2.0, 0.5], [-1.0, 1.0, 0.5, 0.0, 2.0, -1.0, -1.0, 0.5, 2.0, 0.5, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 2.0, 2.0, -1.0, 2.0, -1.0, 0.0, 0.5, 0.5, 0.5, 2.0, -1.0, 1.0, 0.5, 1.0, 1.0, 0.5], [1.0, -1.0, 2.0, -1.0, 0.0, -1.0, 2.0, 1.0, 2.0, 0.5, 0.0, 2.0, 0.5, 0.5, 0.5, 1.0, 0.5, 1.0, 2.0, 0.5, 2.0, 2.0, 0.0, -1.0, 0.0, 0.5, 0.0, 2.0, 0.0, -1.0, 0.0, 1.0]]> : tensor<32x32xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.matmul ins(%A, %W : tensor<32x32xf16>, tensor<32x32xf16>) outs(%start : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %p : tensor<32x32xf32>
}

// -----

// a weight of one repeated number
func.func @f(%A: tensor<32x96xf16>) -> tensor<32x64xf32> {
  %W = arith.constant dense<0.5> : tensor<96x64xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: B is a constant; it must be an argument of the function
  %p = linalg.matmul ins(%A, %W : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a weight whose numbers are elided
func.func @f(%A: tensor<32x96xf16>) -> tensor<32x64xf32> {
  // refused: the data of the constant is not in the payload: 0 bytes of 12288
  %W = arith.constant dense_resource<__elided__> : tensor<96x64xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %W : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a weight in a global
// computes: C = AB + C, 32 x 4 x 4, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
memref.global "private" constant @w : memref<4x4xf16> =
    dense<[[1.0, -2.0, 0.5, 3.0], [0.0, 1.5, -1.0, 2.0], [4.0, -0.5, 2.5, 1.0], [-3.0, 1.0, 0.25, -1.5]]>
func.func @f(%A: memref<32x4xf16>, %C: memref<32x4xf32>) {
  %W = memref.get_global @w : memref<4x4xf16>
  linalg.matmul ins(%A, %W : memref<32x4xf16>, memref<4x4xf16>) outs(%C : memref<32x4xf32>)
  return
}

// -----

// a difference from C
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: subf with D0 (32x64xf32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %C: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%C : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.subf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// A times A
// computes: C = AB, 64 x 64 x 64, f16 x f16 -> f32 (f32 accumulation), B is A's buffer; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<64x64xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%A, %A : tensor<64x64xf16>, tensor<64x64xf16>) outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}

// -----

// A times its transpose
// computes: C = AB, 32 x 32 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major, B is A's buffer; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%A, %A : tensor<32x96xf16>, tensor<32x96xf16>) outs(%start : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %p : tensor<32x32xf32>
}

// -----

// the product returned twice
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: a value is stored or returned twice; each result must be a different value
  return %p, %p : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// the sums and their activation
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: maximumf, also stores R0 (32x64xf32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %r1 = linalg.max ins(%p, %start : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p, %r1 : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// an argument and the product
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> (tensor<32x96xf16>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: result 0 of 2 is initialized from argument 0
  return %A, %p : tensor<32x96xf16>, tensor<32x64xf32>
}

// -----

// a number and the product
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> (f32, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: the function returns a value of type f32: it must return tensors
  return %zero, %p : f32, tensor<32x64xf32>
}

// -----

// no result
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: the result of linalg.matmul is unused: it must be returned or written to C
  return
}

// -----

// two products
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: 2 linalg.matmul ops in the payload; a pipeline accepts one (payload.mlir:6:8,
  %q = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p, %q : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// a row sum of the product
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<32xf32>) -> tensor<32xf32>
  %r = linalg.reduce ins(%p : tensor<32x64xf32>) outs(%z : tensor<32xf32>) dimensions = [1]
    (%x: f32, %acc: f32) {
      %s = arith.addf %x, %acc : f32
      linalg.yield %s : f32
    }
  // refused: func.return has only reductions of the product as results
  return %r : tensor<32xf32>
}

// -----

// a softmax of the product
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  // refused: 'linalg.softmax' beside linalg.matmul is not supported: a pipeline would drop it
  %r = linalg.softmax dimension(1) ins(%p : tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// other functions
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @matmul(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}
func.func private @print(f32)
func.func @helper(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}

// -----

// two functions with a matmul
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}
// refused: 2 functions in the payload; a pipeline accepts one: @f, @g
func.func @g(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a nested module
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
module @outer {
  module @inner {
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}
  }
}

// -----

// a nested module beside a function
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
module @outer {
  module @inner {
    func.func @g(%x: f32) -> f32 {
      return %x : f32
    }
  }
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}
}

// -----

// a name with unusual characters
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @"main.1/layer é"(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a name that begins with a digit
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @"1x1"(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a name that is an instruction
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @add(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a function that calls another one with the matmul
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}
func.func @main(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %r = call @f(%A, %B) : (tensor<32x96xf16>, tensor<96x64xf16>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// a private function
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func private @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// attributes on arguments
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16> {llvm.noalias}, %B: tensor<96x64xf16> {tt.divisibility = 16 : i32}) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// a dialect that is not known
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: operation being parsed with an unregistered dialect
  "mine.op"() : () -> ()
  return %p : tensor<32x64xf32>
}

// -----

// a gpu.module
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
gpu.module @kernels {
  gpu.func @k() kernel {
    gpu.return
  }
}
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// 1 x 1 x 1
// computes: C = AB, 1 x 1 x 1, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync
func.func @f(%A: tensor<1x1xf16>, %B: tensor<1x1xf16>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1xf32>) -> tensor<1x1xf32>
  %p = linalg.matmul ins(%A, %B : tensor<1x1xf16>, tensor<1x1xf16>) outs(%start : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %p : tensor<1x1xf32>
}

// -----

// 1 x 32 x 48
// computes: C = AB, 1 x 32 x 48, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<1x48xf16>, %B: tensor<48x32xf16>) -> tensor<1x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32xf32>) -> tensor<1x32xf32>
  %p = linalg.matmul ins(%A, %B : tensor<1x48xf16>, tensor<48x32xf16>) outs(%start : tensor<1x32xf32>) -> tensor<1x32xf32>
  return %p : tensor<1x32xf32>
}

// -----

// 16 x 1 x 48
// computes: C = AB, 16 x 1 x 48, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync
func.func @f(%A: tensor<16x48xf16>, %B: tensor<48x1xf16>) -> tensor<16x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x1xf32>) -> tensor<16x1xf32>
  %p = linalg.matmul ins(%A, %B : tensor<16x48xf16>, tensor<48x1xf16>) outs(%start : tensor<16x1xf32>) -> tensor<16x1xf32>
  return %p : tensor<16x1xf32>
}

// -----

// 16 x 32 x 1
// computes: C = AB, 16 x 32 x 1, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<16x1xf16>, %B: tensor<1x32xf16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x32xf32>) -> tensor<16x32xf32>
  %p = linalg.matmul ins(%A, %B : tensor<16x1xf16>, tensor<1x32xf16>) outs(%start : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %p : tensor<16x32xf32>
}

// -----

// 17 x 33 x 49
// computes: C = AB, 17 x 33 x 49, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync
func.func @f(%A: tensor<17x49xf16>, %B: tensor<49x33xf16>) -> tensor<17x33xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<17x33xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<17x33xf32>) -> tensor<17x33xf32>
  %p = linalg.matmul ins(%A, %B : tensor<17x49xf16>, tensor<49x33xf16>) outs(%start : tensor<17x33xf32>) -> tensor<17x33xf32>
  return %p : tensor<17x33xf32>
}

// -----

// 0 x 32 x 48
func.func @f(%A: tensor<0x48xf16>, %B: tensor<48x32xf16>) -> tensor<0x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<0x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<0x32xf32>) -> tensor<0x32xf32>
  // refused: a matmul of 0 x 32 x 48 has nothing to compute: m = 0, and sizes must be at least 1
  %p = linalg.matmul ins(%A, %B : tensor<0x48xf16>, tensor<48x32xf16>) outs(%start : tensor<0x32xf32>) -> tensor<0x32xf32>
  return %p : tensor<0x32xf32>
}

// -----

// 16 x 0 x 48
func.func @f(%A: tensor<16x48xf16>, %B: tensor<48x0xf16>) -> tensor<16x0xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x0xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x0xf32>) -> tensor<16x0xf32>
  // refused: a matmul of 16 x 0 x 48 has nothing to compute: n = 0, and sizes must be at least 1
  %p = linalg.matmul ins(%A, %B : tensor<16x48xf16>, tensor<48x0xf16>) outs(%start : tensor<16x0xf32>) -> tensor<16x0xf32>
  return %p : tensor<16x0xf32>
}

// -----

// 16 x 32 x 0
func.func @f(%A: tensor<16x0xf16>, %B: tensor<0x32xf16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x32xf32>) -> tensor<16x32xf32>
  // refused: a matmul of 16 x 32 x 0 has nothing to compute: k = 0, and sizes must be at least 1
  %p = linalg.matmul ins(%A, %B : tensor<16x0xf16>, tensor<0x32xf16>) outs(%start : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %p : tensor<16x32xf32>
}

// -----

// 2^33 rows
// computes: C = AB, 8589934592 x 16 x 16, f16 x f16 -> f32 (f32 accumulation); on none
func.func @f(%A: tensor<8589934592x16xf16>, %B: tensor<16x16xf16>) -> tensor<8589934592x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8589934592x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8589934592x16xf32>) -> tensor<8589934592x16xf32>
  %p = linalg.matmul ins(%A, %B : tensor<8589934592x16xf16>, tensor<16x16xf16>) outs(%start : tensor<8589934592x16xf32>) -> tensor<8589934592x16xf32>
  return %p : tensor<8589934592x16xf32>
}

// -----

// 2^33 columns
// computes: C = AB, 16 x 8589934592 x 16, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync
func.func @f(%A: tensor<16x16xf16>, %B: tensor<16x8589934592xf16>) -> tensor<16x8589934592xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x8589934592xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x8589934592xf32>) -> tensor<16x8589934592xf32>
  %p = linalg.matmul ins(%A, %B : tensor<16x16xf16>, tensor<16x8589934592xf16>) outs(%start : tensor<16x8589934592xf32>) -> tensor<16x8589934592xf32>
  return %p : tensor<16x8589934592xf32>
}

// -----

// k of 2^33
// computes: C = AB, 16 x 16 x 8589934592, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync
func.func @f(%A: tensor<16x8589934592xf16>, %B: tensor<8589934592x16xf16>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
  %p = linalg.matmul ins(%A, %B : tensor<16x8589934592xf16>, tensor<8589934592x16xf16>) outs(%start : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %p : tensor<16x16xf32>
}

// -----

// dynamic rows
func.func @f(%A: tensor<?x96xf16>, %B: tensor<96x64xf16>) -> tensor<?x64xf32> {
  %i = arith.constant 0 : index
  %d = tensor.dim %A, %i : tensor<?x96xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%d) : tensor<?x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  // refused: linalg.matmul has dynamic shapes; sizes must be static
  %p = linalg.matmul ins(%A, %B : tensor<?x96xf16>, tensor<96x64xf16>) outs(%start : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %p : tensor<?x64xf32>
}

// -----

// bias by broadcast and add, ReLU
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: addf, maximumf with D0 (64xf32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %bias: tensor<64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %rows = linalg.broadcast ins(%bias : tensor<64xf32>) outs(%e1 : tensor<32x64xf32>) dimensions = [0]
  %q = linalg.add ins(%p, %rows : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %r = linalg.max ins(%q, %start : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// arithmetic on tensors
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %D: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: 'arith.addf' beside linalg.matmul is not supported: a pipeline would drop it
  %r = arith.addf %p, %D : tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// math on tensors
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  // refused: 'math.tanh' beside linalg.matmul is not supported: a pipeline would drop it
  %r = math.tanh %p : tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// a power
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: powf with D0 (32x64xf32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %D: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %r = linalg.powf ins(%p, %D : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// scaled by a number that is an argument
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: mulf with D0 (32x64xf32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %D: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %r = linalg.map { arith.mulf } ins(%p, %D : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>)
  return %r : tensor<32x64xf32>
}

// -----

// a scale that is an argument
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: mulf with D0 (f32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>, %scale: f32) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.mulf %x, %scale : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// an index in the epilogue
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: sitofp, mulf with D0 (32xi32); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x64xf32>) outs(%e1 : tensor<32x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = arith.mulf %x, %f : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// an activation of A in front
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A prepared from 32x96xf16 by absf; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x96xf16>
  %a = linalg.abs ins(%A : tensor<32x96xf16>) outs(%e1 : tensor<32x96xf16>) -> tensor<32x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %p : tensor<32x64xf32>
}

// -----

// nn.Linear of torch-mlir
// computes: C = f(AB), 32 x 64 x 32, f16 x f16 -> f16 (f32 accumulation), B column-major, f: addf, truncf with D0 (64xf16); on wmma, mma_sync, wgmma
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0) -> (d0)>
module {
func.func @main(%arg0: tensor<32x32xf16>) -> tensor<32x64xf16> {
  %cst = arith.constant 0.000000e+00 : f32
  %w = arith.constant dense_resource<torch_tensor_64_32_torch.float16> : tensor<64x32xf16>
  %bias = arith.constant dense_resource<torch_tensor_64_torch.float16> : tensor<64xf16>
  %0 = tensor.empty() : tensor<32x64xf16>
  %t = linalg.transpose ins(%w : tensor<64x32xf16>) outs(%0 : tensor<32x64xf16>) permutation = [1, 0]
  %ea32 = tensor.empty() : tensor<32x32xf32>
  %a32 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<32x32xf16>) outs(%ea32 : tensor<32x32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %c = arith.extf %in : f16 to f32
    linalg.yield %c : f32
  } -> tensor<32x32xf32>
  %eb32 = tensor.empty() : tensor<32x64xf32>
  %b32 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<32x64xf16>) outs(%eb32 : tensor<32x64xf32>) {
  ^bb0(%in: f16, %out: f32):
    %c = arith.extf %in : f16 to f32
    linalg.yield %c : f32
  } -> tensor<32x64xf32>
  %1 = tensor.empty() : tensor<32x64xf32>
  %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %3 = linalg.matmul ins(%a32, %b32 : tensor<32x32xf32>, tensor<32x64xf32>) outs(%2 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %ebias32 = tensor.empty() : tensor<64xf32>
  %bias32 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%bias : tensor<64xf16>) outs(%ebias32 : tensor<64xf32>) {
  ^bb0(%in: f16, %out: f32):
    %c = arith.extf %in : f16 to f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %bias32 : tensor<32x64xf32>, tensor<64xf32>) outs(%1 : tensor<32x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %5 = arith.addf %in, %in_0 : f32
    linalg.yield %5 : f32
  } -> tensor<32x64xf32>
  %e6 = tensor.empty() : tensor<32x64xf16>
  %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<32x64xf32>) outs(%e6 : tensor<32x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %c = arith.truncf %in : f32 to f16
    linalg.yield %c : f16
  } -> tensor<32x64xf16>
  return %6 : tensor<32x64xf16>
}
}
{-#
  dialect_resources: {
    builtin: {
      torch_tensor_64_32_torch.float16: "0x02000000003C003C0000003C00BC0000003C003C003C00BC00BC0038003C00000038000000BC00BC003800BC00380038000000BC0038003C0000003800BC003C00380038003C00380038003C00000038003C00BC0000003C003C0000000000000038003800000038000000BC003800BC00BC0000003C0038003C0000003800380000003C003C003C003C003800000038000000000038000000380038003C0038000000BC003800BC003C00BC0000000000BC00000038000000000038000000380000003800BC003800380038003C003C00BC00BC00BC00BC003C003C000000BC0038003C003800BC003C003C0038003C00BC00380000003C003C0038003C0000000000BC0038003C00BC003C0038003C0038000000380038003C0038003C00BC003800BC00BC000000380000003800BC00000038003C003C00000000003C00380000003C00BC0000000000BC003800BC00BC000000BC0038003C00BC003800000000003800000000003800BC00380000003800BC000000BC00BC003800BC003C000000BC00BC0000003800380000003C00BC00BC000000BC003C003C00BC003C00BC00BC000000380000003C003C000000BC003C00BC0000000000000038003C003C0000000000BC003C000000BC003C0000003C003C003C0000000000BC0000003C0000003C003C00BC0038000000BC003C00000000003C0000003C000000BC00000038003C003800380038000000BC000000BC003C003C00BC00BC00BC00380000003C000000000000003800BC0038003C0000003C0000003C0000003800BC00BC003C00BC00BC003800000000000000BC00BC003800380038003C00BC00000000003C003C00BC0038003C0038003C0038003800000000003800380038003C003C0038003C003C003C003C00BC000000000000003800BC00BC003C000000BC003C003C0000003800000000003C003800380038000000000000003800BC00BC003C0000003C00BC00380000003C003C003800BC003800BC003800BC003C00BC0000000000BC003800380000003800BC003800380038003C0038000000BC00BC003C00380038003C003C003C00BC00380038000000BC00BC003C0000003C0038003800BC0038003C00BC003800BC00BC000000BC003C00BC00BC0038003C00BC003800BC003C00BC003C00BC00380038003C003C0038003C003C0038003C00BC003C003C000000380000003800BC00BC00000038003800BC0038003800BC00380000000000BC0000000000BC003C0000000000BC0000000000000000003800000038003C00BC00BC000000BC00BC003C00BC003800BC00BC0038003800BC003C003C00BC003C003C00380038003800BC00BC003C00BC003800BC000000BC0038000000BC00BC000000BC000000380000003C000000BC0038003C0000003C000000380000003C003C000000BC00BC003C003C003800BC00BC0038003C00BC003800BC0000003C003C00BC0038003800BC0000003C00BC00BC003800000038003800000038003C00BC00BC003C0038003C003800BC0038000000BC003C003C003C0038003800BC00BC00BC0038000000BC00BC0000003C0000003C0038003C00BC00BC00000038003C003C0038003C003800000038000000000038003C0038003C00380000000000BC0000003C000000380038003C003C003C003C003C000000000000003C0000003C0038003C00380000003C00BC0000000000BC00BC00BC003C0038000000380000000000000000003C003C00BC000000380000003C003C00BC00000038003C00BC0000000000BC00BC003C00000038003C000000BC003C00000000000000BC003C00380000003C003C0000003800BC003C003800BC00BC00BC003C00BC003C0000003800BC003C000000380000000000BC003C003C0038003C00BC0000003C003C00BC003C00BC003C00BC00BC0038000000BC0038000000000038003C00BC00BC00BC0000003800380000003C0038003C003C003800000000003C003800BC003800380038003800BC000000000038000000000000003C003C00380038000000BC003800BC0038000000BC00380038003C003C0000003C0000003C00000038003C000000000000003C00BC003C0000003C003C00BC00000038000000BC003C00BC000000000000003800380038003C00BC003800BC003C00BC00BC00BC0038003800BC00BC00000000003C00000038003800BC00BC003C00000038000000380000003C000000000038003C0000003C0038003C00BC00000038000000BC003C003C00BC00BC0000003C003C00BC003C003C0038003C003C003C003C003C00000000003C003C00BC003800BC00000000000000BC00BC00BC0038003C00BC0038003C000000000038003C003C00BC003C00BC00BC00BC00BC0000003C003C000000BC003C003800BC00BC003C00000000003C003C003800BC00BC00BC003C003C00BC003C003C003C00BC00000000003800BC003C000000BC000000000000003800380038003C003800BC0038000000BC003C00BC003C003800000000000000000038003800000000000000380038003C000000BC000000BC000000BC00BC00BC003800BC00BC00BC003C000000BC0000000000BC000000380000003C003800BC00000038003C00BC0000003C00BC0038003C003C00BC00000000000000000000003C00BC0038003C000000BC003C00BC00000000003800BC0000003C00BC0000003C00BC003C00BC00BC0000000000BC00BC00BC003C000000380038003800BC000000BC0038003C000000BC00BC00BC00BC00BC003C00BC0038000000BC003C0000003C00BC00BC003C003800BC000000BC003C00BC00000038003C003C00000038000000BC0038003C000000000000003C003800000038003C0000003C0000003C00BC000000BC000000000000000000380038003C000000BC0000003C003C0038003800BC0000000000380000000000BC000000BC0000003C0038000000BC0038003800BC003800BC003C00BC003C003C003C00380038000000BC00380038003C0038003800BC0000003C00000000003800BC0000003C0038000000BC00BC00BC0038003C0000000000BC00380038003C00BC003C003800BC00BC00380038003C0000000000BC00BC000000BC00BC000000BC003800380038000000BC000000BC000000BC003C0000003C0038003800BC003800380038000000BC003C003C003C003C003800BC0038003800BC00380038003C00BC0038003800380000000000BC000000BC003C003C003C00BC0038000000380000003C0038003C00380000003800380000003C00BC00380038003800BC000000BC000000BC00BC00BC00BC003800BC003C003C0038003C003800BC0000000000000038003C0038003800380000000000380000000000BC003C003800BC003800BC0038003C003C00000000003800000000003800000038003800BC00BC00BC00BC00BC003C0000003C00000038003C000000000000003800BC000000BC00000038003800BC003C0038000000BC00BC003C0000003800BC0000003C0038003C0000003C003800BC003C00BC000000BC003800380000000000BC00BC00BC00BC00BC00BC003C003800BC003800BC0000000000BC003C000000BC00BC00BC00380038003C003C00BC003800BC00BC000000BC00000000003C00380038003C003800BC00BC00BC003C0000003C000000BC003C003C003C00380000003C00380038000000BC003800000000003800380038000000BC00BC003C00BC00BC00BC003C00BC003800380038003C003C00BC003C003C00380000003800BC00BC000000380000003C003800BC0000003C0000003C00BC003C003800BC003C000000BC00BC0000003C0038003C0038003C0038003C0038003C00BC0038003800BC0038003800000038003C003C00BC0000003C003C0000003C00BC003C003C003C003800BC003C00000038003C003800000038003C003C00000038003800BC0000000000380038003C000000BC00380038000000BC0000003800380038003800BC0000003C003C00BC0038003C000000000000000000BC003C00BC0038003C003800380000000000BC003C00BC0000003C00380000003C0000003C0038003C003C00000038003C00380000003C00BC00BC003C003C003C003C000000BC00BC00BC00BC00BC003C00000038000000BC000000BC003C0000003C003C00380000003800380038003C00BC00BC003C003800380000000000BC00BC00BC00BC003C0000003C0038000000BC00BC000000BC0038003C0038003C003800000000000000BC00BC0038003C00380038003C00BC00BC0038003C0000003800BC0000003C00BC00BC0038003C00BC00380000003800380038003C003800BC003800BC003C000000380038003C00BC0000003800380000003C000000BC0000003C003C000000380000003C000000BC003C00380038003C003800BC0038003800BC003C0038003C0038003C00BC003C0038003C0000003C0000003C003C003C003C000000000000003C00380000000000BC000000BC000000BC00BC00BC0000000000000000003C0038000000BC00BC00BC00BC003C0000003800BC00BC00BC003C0000003800BC00BC003C003800BC0038003C000000BC000000380000003C003C003C00BC003C00380038003C00BC00380038003C00BC003C00BC000000BC000000000000000000000000003C003C003C0038003C00BC003C000000380000003C00BC003C00BC003C00BC00BC003C0038003C00BC003800BC003C00BC00BC003C003C00BC0000003C000000BC0038003C0000000000000038003800380000003C00BC0038003800BC00BC003C003C000000BC00BC00000038003C00380038003C003C00BC003800380000003C00BC00BC000000380000003C000000BC00BC00BC003C00BC003800BC003C00380000003C00BC003C003C0038003800BC00BC0038003C003800BC003C00BC0000003800380000003800BC0038000000380000003800BC0038003C00BC0000003C003C00380038003C0038003C00BC00380000003C0000003C0000000000BC00BC00380000003800BC00380038003C0000003C00000000003C003C000000BC00BC0000003C00BC00380000003800380038003C0038003C003C003C003C0000003C0000000000BC00380000003C0038000000BC00BC0000003C003C003800BC003800BC00BC00BC003C0038003C00BC0000003C003800BC003C003800BC0000003800BC003C0038003800380038000000380000003C003C0038003800BC003800BC00BC00000038003800000000003800380038000000BC000000BC0000003C003C0000003800BC000000000038003C00BC0038003C00BC00BC003C0038003C00BC003C003C00380038003C003C0000003C003800BC00000038003C00000000003800380000003C00BC00380000003800380038000000BC00BC003C000000000038003C000000BC00BC003C00BC003800BC000000BC00BC000000BC00BC0038003800380000003C003C003C000000BC00BC00BC0038003800000038000000380000003C003C00BC003800BC003C003C003C003C00BC000000BC00380038000000000038003C0038003800BC003C000000BC003C0038003C00000000003C00380000003C00000038003C0038003C00380038003C003C003C0038000000BC0038003C00BC0000003800BC",
      torch_tensor_64_torch.float16: "0x02000000003800000000003C0038003800BC000000BC0038003800BC003C0038000000380038003C000000BC000000380000003C0000003C003C003C003800BC003800BC00BC003C00BC003C003C003C003C003C003C0000003800BC0000003C003C003800BC00BC003800BC0000003800BC0000003C003C003C0000003C0038003C003C"
    }
  }
#-}

// -----

// bmm of torch-mlir
// computes: C = AB, 3 x 32 x 64 x 96, f16 x f16 -> f16 (f32 accumulation); on wmma, mma_sync, wgmma
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
func.func @main(%arg0: tensor<3x32x96xf16>, %arg1: tensor<3x96x64xf16>) -> tensor<3x32x64xf16> {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<3x32x64xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %2 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<3x32x96xf16>, tensor<3x96x64xf16>) outs(%1 : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %e3 = tensor.empty() : tensor<3x32x64xf16>
  %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<3x32x64xf32>) outs(%e3 : tensor<3x32x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %c = arith.truncf %in : f32 to f16
    linalg.yield %c : f16
  } -> tensor<3x32x64xf16>
  return %3 : tensor<3x32x64xf16>
}
}

// -----

// addmm of torch-mlir
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), f: addf with D0 (32x64xf32); on wmma, mma_sync, wgmma
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
func.func @main(%arg0: tensor<32x64xf32>, %arg1: tensor<32x96xf16>, %arg2: tensor<96x64xf16>) -> tensor<32x64xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<32x64xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %2 = linalg.matmul ins(%arg1, %arg2 : tensor<32x96xf16>, tensor<96x64xf16>) outs(%1 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%2, %arg0 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%0 : tensor<32x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %4 = arith.addf %in, %in_0 : f32
    linalg.yield %4 : f32
  } -> tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}
}

// -----

// einsum of torch-mlir, bsd,nd->bsn
// computes: C = AB, 32 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; on wmma, mma_sync, wgmma
module {
func.func @main(%arg0: tensor<4x8x96xf16>, %arg1: tensor<64x96xf16>) -> tensor<4x8x64xf32> {
  %cst = arith.constant 0.000000e+00 : f32
  %c = tensor.collapse_shape %arg0 [[0, 1], [2]] : tensor<4x8x96xf16> into tensor<32x96xf16>
  %x = tensor.expand_shape %c [[0, 1], [2]] output_shape [1, 32, 96] : tensor<32x96xf16> into tensor<1x32x96xf16>
  %0 = tensor.empty() : tensor<96x64xf16>
  %t = linalg.transpose ins(%arg1 : tensor<64x96xf16>) outs(%0 : tensor<96x64xf16>) permutation = [1, 0]
  %y = tensor.expand_shape %t [[0, 1], [2]] output_shape [1, 96, 64] : tensor<96x64xf16> into tensor<1x96x64xf16>
  %1 = tensor.empty() : tensor<1x32x64xf32>
  %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<1x32x64xf32>) -> tensor<1x32x64xf32>
  %3 = linalg.batch_matmul ins(%x, %y : tensor<1x32x96xf16>, tensor<1x96x64xf16>) outs(%2 : tensor<1x32x64xf32>) -> tensor<1x32x64xf32>
  %d = tensor.collapse_shape %3 [[0, 1], [2]] : tensor<1x32x64xf32> into tensor<32x64xf32>
  %r = tensor.expand_shape %d [[0, 1], [2]] output_shape [4, 8, 64] : tensor<32x64xf32> into tensor<4x8x64xf32>
  return %r : tensor<4x8x64xf32>
}
}

// -----

// attention scores of torch-mlir, scaled
// computes: C = f(AB), 3 x 32 x 64 x 96, f16 x f16 -> f16 (f32 accumulation), B column-major, f: mulf, truncf; on wmma, mma_sync, wgmma
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
func.func @main(%arg0: tensor<3x32x96xf16>, %arg1: tensor<3x64x96xf16>) -> tensor<3x32x64xf16> {
  %cst = arith.constant 0.000000e+00 : f32
  %s = arith.constant 1.250000e-01 : f32
  %e = tensor.empty() : tensor<3x96x64xf16>
  %t = linalg.transpose ins(%arg1 : tensor<3x64x96xf16>) outs(%e : tensor<3x96x64xf16>) permutation = [0, 2, 1]
  %0 = tensor.empty() : tensor<3x32x64xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %2 = linalg.batch_matmul ins(%arg0, %t : tensor<3x32x96xf16>, tensor<3x96x64xf16>) outs(%1 : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
  %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<3x32x64xf32>) outs(%0 : tensor<3x32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.mulf %in, %s : f32
    linalg.yield %5 : f32
  } -> tensor<3x32x64xf32>
  %e3 = tensor.empty() : tensor<3x32x64xf16>
  %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<3x32x64xf32>) outs(%e3 : tensor<3x32x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %c = arith.truncf %in : f32 to f16
    linalg.yield %c : f16
  } -> tensor<3x32x64xf16>
  return %3 : tensor<3x32x64xf16>
}
}

// -----

// rows of A that overlap
func.func @f(%A: memref<3072xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  // refused: memref.reinterpret_cast accesses a part of a buffer that is not an argument, or not dense rows at a static offset
  %a = memref.reinterpret_cast %A to offset: [0], sizes: [32, 96], strides: [48, 1] : memref<3072xf16> to memref<32x96xf16, strided<[48, 1]>>
  linalg.matmul ins(%a, %B : memref<32x96xf16, strided<[48, 1]>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// a part of A behind its buffer
func.func @f(%A: memref<3072xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  // refused: memref.reinterpret_cast accesses a part that ends beyond its buffer, which has 3072 elements
  %a = memref.reinterpret_cast %A to offset: [0], sizes: [32, 96], strides: [104, 1] : memref<3072xf16> to memref<32x96xf16, strided<[104, 1]>>
  linalg.matmul ins(%a, %B : memref<32x96xf16, strided<[104, 1]>>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// A is overwritten by one number
func.func @f(%A: memref<32x96xf16>, %B: memref<96x64xf16>, %C: memref<32x64xf32>) {
  %two = arith.constant 2.0 : f16
  // refused: linalg.fill makes an operand, or overwrites a result, with copies of one scalar: 2.0
  linalg.fill ins(%two : f16) outs(%A : memref<32x96xf16>)
  linalg.matmul ins(%A, %B : memref<32x96xf16>, memref<96x64xf16>) outs(%C : memref<32x64xf32>)
  return
}

// -----

// packed tiles of both, multiplied by mmt4d and unpacked
// computes: C = AB, 32 x 64 x 48, f16 x f16 -> f32 (f32 accumulation); on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x48xf16>, %B: tensor<48x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<4x6x8x8xf16>
  %eb = tensor.empty() : tensor<8x6x8x8xf16>
  %ec = tensor.empty() : tensor<4x8x8x8xf32>
  %eo = tensor.empty() : tensor<32x64xf32>
  %a = linalg.pack %A inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %ea : tensor<32x48xf16> -> tensor<4x6x8x8xf16>
  %b = linalg.pack %B outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 8] into %eb : tensor<48x64xf16> -> tensor<8x6x8x8xf16>
  %start = linalg.fill ins(%zero : f32) outs(%ec : tensor<4x8x8x8xf32>) -> tensor<4x8x8x8xf32>
  %p = linalg.mmt4d ins(%a, %b : tensor<4x6x8x8xf16>, tensor<8x6x8x8xf16>) outs(%start : tensor<4x8x8x8xf32>) -> tensor<4x8x8x8xf32>
  %r = linalg.unpack %p inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %eo : tensor<4x8x8x8xf32> -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// the result quantized to fp8
// computes: C = f(AB), 32 x 64 x 96, f16 x f16 -> f8E4M3FN (f32 accumulation), f: mulf, maximumf, minimumf, truncf; on wmma, mma_sync, wgmma
func.func @f(%A: tensor<32x96xf16>, %B: tensor<96x64xf16>) -> tensor<32x64xf8E4M3FN> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 8.0 : f32
  %low = arith.constant -448.0 : f32
  %high = arith.constant 448.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.matmul ins(%A, %B : tensor<32x96xf16>, tensor<96x64xf16>) outs(%start : tensor<32x64xf32>) -> tensor<32x64xf32>
  %stored = tensor.empty() : tensor<32x64xf8E4M3FN>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x64xf32>) outs(%stored : tensor<32x64xf8E4M3FN>) {
  ^bb0(%x: f32, %o: f8E4M3FN):
    %scaled = arith.mulf %x, %scale : f32
    %above = arith.maximumf %scaled, %low : f32
    %clamped = arith.minimumf %above, %high : f32
    %q = arith.truncf %clamped : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
  } -> tensor<32x64xf8E4M3FN>
  return %r : tensor<32x64xf8E4M3FN>
}
