// mmt4d
func.func @f(%A: tensor<4x6x16x16xf16>, %B: tensor<8x6x16x16xf16>) -> tensor<4x8x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8x16x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8x16x16xf32>) -> tensor<4x8x16x16xf32>
  // refused: linalg.mmt4d: the dimensions of C are in an order that is neither row- nor column-major
  %p = linalg.mmt4d ins(%A, %B : tensor<4x6x16x16xf16>, tensor<8x6x16x16xf16>) outs(%start : tensor<4x8x16x16xf32>) -> tensor<4x8x16x16xf32>
  return %p : tensor<4x8x16x16xf32>
}

// -----

// batch_reduce_matmul
func.func @f(%A: tensor<4x64x96xf16>, %B: tensor<4x96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.batch_reduce_matmul: the dimensions of A are in an order
  %p = linalg.batch_reduce_matmul ins(%A, %B : tensor<4x64x96xf16>, tensor<4x96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// heads between m and k, of few rows each
func.func @f(%A: tensor<8x4x96xf16>, %B: tensor<96x128xf16>) -> tensor<4x8x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8x128xf32>) -> tensor<4x8x128xf32>
  // refused: linalg.contract: the dimensions of A are in an order
  %p = linalg.contract indexing_maps = [affine_map<(h, m, n, k) -> (m, h, k)>, affine_map<(h, m, n, k) -> (k, n)>, affine_map<(h, m, n, k) -> (h, m, n)>]
      ins(%A, %B : tensor<8x4x96xf16>, tensor<96x128xf16>) outs(%start : tensor<4x8x128xf32>) -> tensor<4x8x128xf32>
  return %p : tensor<4x8x128xf32>
}

// -----

// result in an order between
func.func @f(%A: tensor<64x96xf32>, %B: tensor<96x4x32xf32>) -> tensor<4x64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  // refused: linalg.contract: the dimensions of B are in an order
  %p = linalg.contract indexing_maps = [affine_map<(m, i, j, k) -> (m, k)>, affine_map<(m, i, j, k) -> (k, i, j)>, affine_map<(m, i, j, k) -> (i, m, j)>]
      ins(%A, %B : tensor<64x96xf32>, tensor<96x4x32xf32>) outs(%start : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  return %p : tensor<4x64x32xf32>
}

// -----

// k of A and of B in two orders
func.func @f(%A: tensor<64x8x12xf16>, %B: tensor<12x8x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.contract: the dimensions of B are in an order
  %p = linalg.contract indexing_maps = [affine_map<(m, n, h, d) -> (m, h, d)>, affine_map<(m, n, h, d) -> (d, h, n)>, affine_map<(m, n, h, d) -> (m, n)>]
      ins(%A, %B : tensor<64x8x12xf16>, tensor<12x8x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// two contractions
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %D: tensor<128x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %t = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  // refused: a second contraction, linalg.contract, beside that of
  %q = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%p, %D : tensor<64x128xf32>, tensor<128x32xf32>) outs(%t : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %q : tensor<64x32xf32>
}

// -----

// maximum of sums
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.addf %u, %v : f32
    %s = arith.maximumf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// products without a sum
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %w = arith.mulf %x, %y : f16
    %s = arith.extf %w : f16 to f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// product rounded before the sum
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %w = arith.mulf %x, %y : f16
    %v = arith.extf %w : f16 to f32
    %s = arith.addf %z, %v : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// product scaled
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %t = arith.mulf %w, %u : f32
    %s = arith.addf %z, %t : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// a square
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %w = arith.mulf %u, %u : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// difference the other way
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.subf %w, %z : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// unsigned integers of 16 bits
func.func @f(%A: tensor<64x96xi16>, %B: tensor<96x128xi8>) -> tensor<64x128xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<64x128xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<64x128xi32>) -> tensor<64x128xi32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xi16>, tensor<96x128xi8>) outs(%start : tensor<64x128xi32>) {
  ^bb0(%x: i16, %y: i8, %z: i32):
    %u = arith.extui %x : i16 to i32
    %v = arith.extui %y : i8 to i32
    %w = arith.muli %u, %v : i32
    %s = arith.addi %z, %w : i32
    linalg.yield %s : i32
  } -> tensor<64x128xi32>
  return %p : tensor<64x128xi32>
}

// -----

// A reduced before the product
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %low = arith.constant 0.0 : f16
  %m_e = tensor.empty() : tensor<64xf16>
  %m_z = linalg.fill ins(%low : f16) outs(%m_e : tensor<64xf16>) -> tensor<64xf16>
  // refused: linalg.generic is a producer of A or B that reduces, or writes in an order other than that of its loops
  %m = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%A : tensor<64x96xf16>) outs(%m_z : tensor<64xf16>) {
  ^bb0(%x: f16, %y: f16):
    %t = arith.maximumf %x, %y : f16
    linalg.yield %t : f16
  } -> tensor<64xf16>
  %a_e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A, %m : tensor<64x96xf16>, tensor<64xf16>) outs(%a_e : tensor<64x96xf16>) {
  ^bb0(%x: f16, %s: f16, %y: f16):
    %t = arith.subf %x, %s : f16
    linalg.yield %t : f16
  } -> tensor<64x96xf16>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// A without subnormal numbers
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a_e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<64x96xf16>) outs(%a_e : tensor<64x96xf16>) {
  ^bb0(%x: f16, %y: f16):
    // refused: 'arith.flush_denormals' in linalg.generic, a producer of A or B
    %t = arith.flush_denormals %x : f16
    linalg.yield %t : f16
  } -> tensor<64x96xf16>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// convolution
func.func @f(%A: tensor<66xf16>, %B: tensor<3xf16>, %C: tensor<64xf32>) -> tensor<64xf32> {
  // refused: a producer of A or B accesses elements at computed indices, such as the windows of a convolution
  %p = linalg.conv_1d ins(%A, %B : tensor<66xf16>, tensor<3xf16>) outs(%C : tensor<64xf32>) -> tensor<64xf32>
  return %p : tensor<64xf32>
}

// -----

// diagonal of A
func.func @f(%A: tensor<64x64xf16>, %B: tensor<64x128xf16>) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128xf32>) -> tensor<128xf32>
  // refused: a producer of A or B accesses elements at computed indices, such as the windows of a convolution
  %p = linalg.generic {
      indexing_maps = [affine_map<(n, k) -> (k, k)>, affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%A, %B : tensor<64x64xf16>, tensor<64x128xf16>) outs(%start : tensor<128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %p : tensor<128xf32>
}

// -----

// a dimension of A alone
func.func @f(%A: tensor<64x8x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic has a dimension of 8 that only A has
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k, j) -> (m, j, k)>, affine_map<(m, n, k, j) -> (k, n)>, affine_map<(m, n, k, j) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%A, %B : tensor<64x8x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// product of three
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %D: tensor<64x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: linalg.generic is not a contraction
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B, %D : tensor<64x96xf16>, tensor<96x128xf16>, tensor<64x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %d: f16, %z: f32):
    %xd = arith.mulf %x, %d : f16
    %u = arith.extf %xd : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// quantized_matmul with zero points of 64 bits
func.func @f(%A: tensor<64x96xi8>, %B: tensor<96x128xi8>, %x: i64, %y: i64, %C: tensor<64x128xi64>) -> tensor<64x128xi64> {
  // refused: linalg.quantized_matmul has zero points of another form, or is on buffers
  %p = linalg.quantized_matmul ins(%A, %B, %x, %y : tensor<64x96xi8>, tensor<96x128xi8>, i64, i64) outs(%C : tensor<64x128xi64>) -> tensor<64x128xi64>
  return %p : tensor<64x128xi64>
}

// -----

// every second row of A
func.func @f(%A: tensor<128x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: tensor.extract_slice accesses a part of a value other than an argument, or rows that are not dense at a static offset
  %a = tensor.extract_slice %A[0, 0] [64, 96] [2, 1] : tensor<128x96xf16> to tensor<64x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// every second column of a buffer
func.func @f(%A: memref<64x192xf16>, %B: memref<96x128xf16>, %C: memref<64x128xf32>) {
  // refused: memref.subview accesses a part of a buffer that is not an argument, or not dense rows at a static offset
  %a = memref.subview %A[0, 0] [64, 96] [1, 2] : memref<64x192xf16> to memref<64x96xf16, strided<[192, 2]>>
  linalg.matmul ins(%a, %B : memref<64x96xf16, strided<[192, 2]>>, memref<96x128xf16>) outs(%C : memref<64x128xf32>)
  return
}

// -----

// rows that overlap
// refused: argument 0 is memref<64x96xf16, strided<[64, 1]>>; buffers must be row-major with static row pitches
func.func @f(%A: memref<64x96xf16, strided<[64, 1]>>, %B: memref<128x96xf16>, %C: memref<64x128xf32>) {
  %b = memref.transpose %B (i, j) -> (j, i) : memref<128x96xf16> to memref<96x128xf16, strided<[1, 96]>>
  linalg.matmul ins(%A, %b : memref<64x96xf16, strided<[64, 1]>>, memref<96x128xf16, strided<[1, 96]>>) outs(%C : memref<64x128xf32>)
  return
}

// -----

// reshape that does not nest
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x9x10xf16>) -> tensor<64x90xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x90xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x90xf32>) -> tensor<64x90xf32>
  %b9 = tensor.collapse_shape %B [[0], [1, 2]] : tensor<96x9x10xf16> into tensor<96x90xf16>
  // refused: tensor.expand_shape expands a dimension differently from how it was collapsed
  %b = tensor.expand_shape %b9 [[0], [1, 2]] output_shape [96, 6, 15] : tensor<96x90xf16> into tensor<96x6x15xf16>
  %d = tensor.collapse_shape %b [[0], [1, 2]] : tensor<96x6x15xf16> into tensor<96x90xf16>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %d : tensor<64x96xf16>, tensor<96x90xf16>) outs(%start : tensor<64x90xf32>) -> tensor<64x90xf32>
  return %p : tensor<64x90xf32>
}

// -----

// print beside it
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %one = arith.constant 1.0 : f32
  // refused: 'vector.print' beside the contraction is not supported: a pipeline would drop it
  vector.print %one : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// returned twice
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  // refused: a value is stored or returned twice; each result must be a different value
  return %p, %p : tensor<64x128xf32>, tensor<64x128xf32>
}

// -----

// sums that start from ones
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  // refused: linalg.fill starts the accumulator from something other than the constant 0: 1.0
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// sums that start from a row of bias
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %bias: tensor<128xf32>) -> tensor<64x128xf32> {
  %e = tensor.empty() : tensor<64x128xf32>
  %start = linalg.broadcast ins(%bias : tensor<128xf32>) outs(%e : tensor<64x128xf32>) dimensions = [0]
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: the result is initialized from argument 2 and written elsewhere
  return %p : tensor<64x128xf32>
}

// -----

// dynamic sizes
// refused: func.func has dynamic shapes; sizes must be static
func.func @f(%A: tensor<?x96xf16>, %B: tensor<96x128xf16>, %C: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<?x96xf16>, tensor<96x128xf16>) outs(%C : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %p : tensor<?x128xf32>
}

// -----

// no contraction
// refused: the function has no contraction: no linalg op that multiplies and adds
func.func @f(%A: tensor<64x96xf16>) -> tensor<96x64xf16> {
  %e = tensor.empty() : tensor<96x64xf16>
  %t = linalg.transpose ins(%A : tensor<64x96xf16>) outs(%e : tensor<96x64xf16>) permutation = [1, 0]
  return %t : tensor<96x64xf16>
}

// -----

// a copy of A to another buffer
func.func @f(%A: memref<64x96xf16>, %B: memref<96x128xf16>, %C: memref<64x128xf32>, %D: memref<64x96xf16>) {
  // refused: memref.copy writes an argument to argument 3, which a pipeline would drop
  memref.copy %A, %D : memref<64x96xf16> to memref<64x96xf16>
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : memref<64x96xf16>, memref<96x128xf16>) outs(%C : memref<64x128xf32>)
  return
}

// -----

// the product in a buffer that A was read from
func.func @f(%A: memref<64x64xf16>, %B: memref<64x64xf16>) {
  // refused: linalg.matmul takes argument 0 as C and as A or B; C must be distinct
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%A : memref<64x64xf16>)
  return
}

// -----

// C added transposed, in place
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x64xf16>, %C: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<96x64xf16>) outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  // refused: linalg.generic reads argument 2, which the result is written to, a second time or in another order
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %C : tensor<64x64xf32>, tensor<64x64xf32>) outs(%C : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %q : tensor<64x64xf32>
}

// -----

// C in the sums and added again, in place
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x64xf16>, %C: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<96x64xf16>) outs(%C : tensor<64x64xf32>) -> tensor<64x64xf32>
  // refused: linalg.generic reads argument 2, which the result is written to, a second time or in another order
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %C : tensor<64x64xf32>, tensor<64x64xf32>) outs(%C : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %q : tensor<64x64xf32>
}

// -----

// the sums and their transpose
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x64xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<96x64xf16>) outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %p : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  // refused: the result is a part of the product, or repeats it
  return %q : tensor<64x64xf32>
}

// -----

// the sums, and their rounding in another order
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> (tensor<64x128xf32>, tensor<128x64xf16>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<128x64xf16>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%e : tensor<128x64xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<128x64xf16>
  // refused: a second result whose dimensions are in another order than those of the first
  return %p, %q : tensor<64x128xf32>, tensor<128x64xf16>
}

// -----

// two results whose buffers are read
func.func @f(%A: memref<64x96xf16>, %B: memref<128x96xf16>, %C: memref<64x128xf32>, %D: memref<64x128xf32>) {
  linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : memref<64x96xf16>, memref<128x96xf16>) outs(%C : memref<64x128xf32>)
  // refused: a second result, argument 3, that is also read
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%C : memref<64x128xf32>) outs(%D : memref<64x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    %t = arith.addf %x, %y : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// a result that is returned, and one that is written
func.func @f(%A: tensor<64x96xf16>, %W: tensor<128x96xf16>, %D: memref<64x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %W : tensor<64x96xf16>, tensor<128x96xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x128xf16>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%e : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  bufferization.materialize_in_destination %q in restrict writable %D : (tensor<64x128xf16>, memref<64x128xf16>) -> ()
  // refused: results are returned as well as written to buffers; accepted: one of the two
  return %p : tensor<64x128xf32>
}

// -----

// sums of the matrices of a batch
func.func @f(%A: tensor<4x16x96xf16>, %B: tensor<4x128x96xf16>) -> (tensor<4x16x128xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%A, %B : tensor<4x16x96xf16>, tensor<4x128x96xf16>) outs(%start : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<4x16x128xf32>) outs(%z : tensor<4x16xf32>) dimensions = [2]
  // refused: a result that reduces the products of a batch
  return %p, %s : tensor<4x16x128xf32>, tensor<4x16xf32>
}

// -----

// sums of some of the rows
func.func @f(%A: tensor<4x16x96xf16>, %B: tensor<128x96xf16>) -> (tensor<4x16x128xf32>, tensor<16x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(s, m, n, k) -> (s, m, k)>, affine_map<(s, m, n, k) -> (n, k)>, affine_map<(s, m, n, k) -> (s, m, n)>]
      ins(%A, %B : tensor<4x16x96xf16>, tensor<128x96xf16>) outs(%start : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %e = tensor.empty() : tensor<16x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x128xf32>) -> tensor<16x128xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<4x16x128xf32>) outs(%z : tensor<16x128xf32>) dimensions = [0]
  // refused: a result that reduces dimensions other than all rows or all columns of the product
  return %p, %s : tensor<4x16x128xf32>, tensor<16x128xf32>
}

// -----

// sums of the rows, without the product
func.func @f(%A: tensor<64x96xf16>, %B: tensor<128x96xf16>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<128x96xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<64x128xf32>) outs(%z : tensor<64xf32>) dimensions = [1]
  // refused: func.return has only reductions of the product as results
  return %s : tensor<64xf32>
}

// -----

// a reduction that begins with an argument
func.func @f(%A: tensor<64x96xf16>, %B: tensor<128x96xf16>, %s0: tensor<64xf32>) -> (tensor<64x128xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<128x96xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  // refused: the initial value of linalg.reduce is an argument
  %s = linalg.reduce { arith.addf } ins(%p : tensor<64x128xf32>) outs(%s0 : tensor<64xf32>) dimensions = [1]
  return %p, %s : tensor<64x128xf32>, tensor<64xf32>
}
