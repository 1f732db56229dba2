// batch_matmul
func.func @f(%A: tensor<4x64x96xf16>, %B: tensor<4x96x32xf16>) -> tensor<4x64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<4x64x96xf16>, tensor<4x96x32xf16>) outs(%start : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  return %p : tensor<4x64x32xf32>
}

// -----

// batch_matmul with keys transposed
func.func @f(%A: tensor<4x64x96xf16>, %B: tensor<4x32x96xf16>) -> tensor<4x64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %b_e = tensor.empty() : tensor<4x96x32xf16>
  %b = linalg.transpose ins(%B : tensor<4x32x96xf16>) outs(%b_e : tensor<4x96x32xf16>) permutation = [0, 2, 1]
  %p = linalg.batch_matmul ins(%A, %b : tensor<4x64x96xf16>, tensor<4x96x32xf16>) outs(%start : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  return %p : tensor<4x64x32xf32>
}

// -----

// bmm of torch-mlir, rounded
func.func @f(%A: tensor<4x64x96xf16>, %B: tensor<4x96x32xf16>) -> tensor<4x64x32xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<4x64x96xf16>, tensor<4x96x32xf16>) outs(%start : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %h = tensor.empty() : tensor<4x64x32xf16>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : tensor<4x64x32xf32>) outs(%h : tensor<4x64x32xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<4x64x32xf16>
  return %r : tensor<4x64x32xf16>
}

// -----

// two batch dimensions
func.func @f(%A: tensor<2x3x64x96xf16>, %B: tensor<2x3x96x32xf16>) -> tensor<2x3x64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3x64x32xf32>) -> tensor<2x3x64x32xf32>
  %p = linalg.contract indexing_maps = [affine_map<(a, b, m, n, k) -> (a, b, m, k)>, affine_map<(a, b, m, n, k) -> (a, b, k, n)>, affine_map<(a, b, m, n, k) -> (a, b, m, n)>]
      ins(%A, %B : tensor<2x3x64x96xf16>, tensor<2x3x96x32xf16>) outs(%start : tensor<2x3x64x32xf32>) -> tensor<2x3x64x32xf32>
  return %p : tensor<2x3x64x32xf32>
}

// -----

// one A for all, B column-major
func.func @f(%A: tensor<64x96xf16>, %B: tensor<4x32x96xf16>) -> tensor<4x64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %p = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<4x32x96xf16>) outs(%start : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  return %p : tensor<4x64x32xf32>
}

// -----

// one B for all behind a transposed result
func.func @f(%A: tensor<4x64x96xf16>, %B: tensor<96x32xf16>) -> tensor<4x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, n, m)>]
      ins(%A, %B : tensor<4x64x96xf16>, tensor<96x32xf16>) outs(%start : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %p : tensor<4x32x64xf32>
}

// -----

// a bias and a matrix for all of a batch
func.func @f(%A: tensor<4x64x96xf16>, %B: tensor<4x96x32xf16>, %bias: tensor<32xf32>, %D: tensor<64x32xf32>) -> tensor<4x64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<4x64x96xf16>, tensor<4x96x32xf16>) outs(%start : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %e = tensor.empty() : tensor<4x64x32xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j, l) -> (i, j, l)>, affine_map<(i, j, l) -> (l)>, affine_map<(i, j, l) -> (i, j, l)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %bias : tensor<4x64x32xf32>, tensor<32xf32>) outs(%e : tensor<4x64x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<4x64x32xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j, l) -> (i, j, l)>, affine_map<(i, j, l) -> (j, l)>, affine_map<(i, j, l) -> (i, j, l)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%q, %D : tensor<4x64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<4x64x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<4x64x32xf32>
  return %r : tensor<4x64x32xf32>
}

// -----

// heads of attention, of which each is a batch
func.func @f(%A: tensor<2x4x64x32xf16>, %B: tensor<2x4x64x32xf16>) -> tensor<8x64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %a = tensor.collapse_shape %A [[0, 1], [2], [3]] : tensor<2x4x64x32xf16> into tensor<8x64x32xf16>
  %b = tensor.collapse_shape %B [[0, 1], [2], [3]] : tensor<2x4x64x32xf16> into tensor<8x64x32xf16>
  %bt_e = tensor.empty() : tensor<8x32x64xf16>
  %bt = linalg.transpose ins(%b : tensor<8x64x32xf16>) outs(%bt_e : tensor<8x32x64xf16>) permutation = [0, 2, 1]
  %p = linalg.batch_matmul ins(%a, %bt : tensor<8x64x32xf16>, tensor<8x32x64xf16>) outs(%start : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  return %p : tensor<8x64x64xf32>
}
