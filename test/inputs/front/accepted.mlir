// generic, loops m n k
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
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

// generic, loops k m n
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(k, m, n) -> (m, k)>, affine_map<(k, m, n) -> (k, n)>, affine_map<(k, m, n) -> (m, n)>],
      iterator_types = ["reduction", "parallel", "parallel"]}
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

// generic, loops n k m
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(n, k, m) -> (m, k)>, affine_map<(n, k, m) -> (k, n)>, affine_map<(n, k, m) -> (m, n)>],
      iterator_types = ["parallel", "reduction", "parallel"]}
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

// generic, B before A
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 1, b is 0, c is 2
func.func @f(%B: tensor<96x128xf16>, %A: tensor<64x96xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%B, %A : tensor<96x128xf16>, tensor<64x96xf16>) outs(%start : tensor<64x128xf32>) {
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

// generic, factors and terms exchanged
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
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
    %w = arith.mulf %v, %u : f32
    %s = arith.addf %w, %z : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// generic, A and B column-major
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<96x64xf16>, %B: tensor<128x96xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<96x64xf16>, tensor<128x96xf16>) outs(%start : tensor<64x128xf32>) {
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

// generic, sums in C
// computes: C = AB + C, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %C: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%C : tensor<64x128xf32>) {
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

// generic, C is transposed
// computes: C = AB, 128 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; a is 1, b is 0, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<128x64xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<128x64xf32>
  return %p : tensor<128x64xf32>
}

// -----

// generic on buffers
// computes: C = AB + C, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 2, b is 1, c is 0
func.func @f(%C: memref<64x128xf32>, %B: memref<96x128xf16>, %A: memref<64x96xf16>) {
  linalg.generic {
      indexing_maps = [affine_map<(k, n, m) -> (k, n)>, affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (m, n)>],
      iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%B, %A : memref<96x128xf16>, memref<64x96xf16>) outs(%C : memref<64x128xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// generic, sums in f16
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f16 (f16 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<64x128xf16>
  %start = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x128xf16>) -> tensor<64x128xf16>
  %p = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %w = arith.mulf %x, %y : f16
    %s = arith.addf %z, %w : f16
    linalg.yield %s : f16
  } -> tensor<64x128xf16>
  return %p : tensor<64x128xf16>
}

// -----

// contract
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// contract, loops k n m, A column-major
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), A column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<96x64xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [affine_map<(k, n, m) -> (k, m)>, affine_map<(k, n, m) -> (k, n)>, affine_map<(k, n, m) -> (m, n)>]
      ins(%A, %B : tensor<96x64xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// contract, C is transposed
// computes: C = AB, 128 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 1, b is 0, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<128x96xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%A, %B : tensor<64x96xf16>, tensor<128x96xf16>) outs(%start : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %p : tensor<128x64xf32>
}

// -----

// contract with two dimensions of m
// computes: C = AB, 8 x 8 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), B broadcast; a is 0, b is 1, c is 2
func.func @f(%A: tensor<8x8x96xf16>, %B: tensor<96x128xf16>) -> tensor<8x8x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8x128xf32>) -> tensor<8x8x128xf32>
  %p = linalg.contract indexing_maps = [affine_map<(i, j, n, k) -> (i, j, k)>, affine_map<(i, j, n, k) -> (k, n)>, affine_map<(i, j, n, k) -> (i, j, n)>]
      ins(%A, %B : tensor<8x8x96xf16>, tensor<96x128xf16>) outs(%start : tensor<8x8x128xf32>) -> tensor<8x8x128xf32>
  return %p : tensor<8x8x128xf32>
}

// -----

// contract with two dimensions of k
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x12x8xf16>, %B: tensor<12x8x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [affine_map<(m, n, h, d) -> (m, h, d)>, affine_map<(m, n, h, d) -> (h, d, n)>, affine_map<(m, n, h, d) -> (m, n)>]
      ins(%A, %B : tensor<64x12x8xf16>, tensor<12x8x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// contract with two dimensions of m, n and k, B first and column-major
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 1, b is 0, c is 2
func.func @f(%w: tensor<16x8x12x8xf16>, %x: tensor<4x16x12x8xf16>) -> tensor<4x16x16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16x16x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16x16x8xf32>) -> tensor<4x16x16x8xf32>
  %p = linalg.contract indexing_maps = [affine_map<(b, s, o, p, h, d) -> (o, p, h, d)>, affine_map<(b, s, o, p, h, d) -> (b, s, h, d)>, affine_map<(b, s, o, p, h, d) -> (b, s, o, p)>]
      ins(%w, %x : tensor<16x8x12x8xf16>, tensor<4x16x12x8xf16>) outs(%start : tensor<4x16x16x8xf32>) -> tensor<4x16x16x8xf32>
  return %p : tensor<4x16x16x8xf32>
}

// -----

// transpose of A
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), A column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<96x64xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a_e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.transpose ins(%A : tensor<96x64xf16>) outs(%a_e : tensor<64x96xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// transpose of B, a weight
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<128x96xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %b_e = tensor.empty() : tensor<96x128xf16>
  %b = linalg.transpose ins(%B : tensor<128x96xf16>) outs(%b_e : tensor<96x128xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%A, %b : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// transpose of A and B
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<96x64xf16>, %B: tensor<128x96xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a_e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.transpose ins(%A : tensor<96x64xf16>) outs(%a_e : tensor<64x96xf16>) permutation = [1, 0]
  %b_e = tensor.empty() : tensor<96x128xf16>
  %b = linalg.transpose ins(%B : tensor<128x96xf16>) outs(%b_e : tensor<96x128xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// transpose of a transpose
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %t_e = tensor.empty() : tensor<96x64xf16>
  %t = linalg.transpose ins(%A : tensor<64x96xf16>) outs(%t_e : tensor<96x64xf16>) permutation = [1, 0]
  %a_e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.transpose ins(%t : tensor<96x64xf16>) outs(%a_e : tensor<64x96xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// transpose of the result
// computes: C = AB, 128 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; a is 1, b is 0, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r_e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.transpose ins(%p : tensor<64x128xf32>) outs(%r_e : tensor<128x64xf32>) permutation = [1, 0]
  return %r : tensor<128x64xf32>
}

// -----

// transpose of a weight and of the rounded result
// computes: C = AB, 128 x 64 x 96, f16 x f16 -> f16 (f32 accumulation), B column-major; a is 1, b is 0, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<128x96xf16>) -> tensor<128x64xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %b_e = tensor.empty() : tensor<96x128xf16>
  %b = linalg.transpose ins(%B : tensor<128x96xf16>) outs(%b_e : tensor<96x128xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%A, %b : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %half = tensor.empty() : tensor<64x128xf16>
  %rounded = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%half : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %r_e = tensor.empty() : tensor<128x64xf16>
  %r = linalg.transpose ins(%rounded : tensor<64x128xf16>) outs(%r_e : tensor<128x64xf16>) permutation = [1, 0]
  return %r : tensor<128x64xf16>
}

// -----

// transpose by a generic
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), A column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<96x64xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<96x64xf16>) outs(%e : tensor<64x96xf16>) {
  ^bb0(%x: f16, %y: f16):
    linalg.yield %x : f16
  } -> tensor<64x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// transpose into an allocated buffer
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 0, b is 1, c is 2
func.func @f(%A: memref<64x96xf16>, %B: memref<128x96xf16>, %C: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<96x128xf16>
  linalg.transpose ins(%B : memref<128x96xf16>) outs(%b : memref<96x128xf16>) permutation = [1, 0]
  linalg.fill ins(%zero : f32) outs(%C : memref<64x128xf32>)
  linalg.matmul ins(%A, %b : memref<64x96xf16>, memref<96x128xf16>) outs(%C : memref<64x128xf32>)
  memref.dealloc %b : memref<96x128xf16>
  return
}

// -----

// sums in an allocated buffer, copied to C
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: memref<64x96xf16>, %B: memref<96x128xf16>, %C: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<64x128xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<64x128xf32>)
  linalg.matmul ins(%A, %B : memref<64x96xf16>, memref<96x128xf16>) outs(%c : memref<64x128xf32>)
  memref.copy %c, %C : memref<64x128xf32> to memref<64x128xf32>
  return
}

// -----

// three dimensions, collapsed and expanded
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%x: tensor<4x16x96xf16>, %B: tensor<96x128xf16>) -> tensor<4x16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x16x96xf16> into tensor<64x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [4, 16, 128] : tensor<64x128xf32> into tensor<4x16x128xf32>
  return %r : tensor<4x16x128xf32>
}

// -----

// vectors of numbers, expanded to matrices
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<6144xf16>, %B: tensor<12288xf16>) -> tensor<8192xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a = tensor.expand_shape %A [[0, 1]] output_shape [64, 96] : tensor<6144xf16> into tensor<64x96xf16>
  %b = tensor.expand_shape %B [[0, 1]] output_shape [96, 128] : tensor<12288xf16> into tensor<96x128xf16>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r = tensor.collapse_shape %p [[0, 1]] : tensor<64x128xf32> into tensor<8192xf32>
  return %r : tensor<8192xf32>
}

// -----

// views of buffers
// computes: C = AB + C, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 0, b is 1, c is 2
func.func @f(%A: memref<4x16x96xf16>, %B: memref<128x4x24xf16>, %C: memref<4x16x128xf32>) {
  %a = memref.collapse_shape %A [[0, 1], [2]] : memref<4x16x96xf16> into memref<64x96xf16>
  %t = memref.collapse_shape %B [[0], [1, 2]] : memref<128x4x24xf16> into memref<128x96xf16>
  %b = memref.transpose %t (i, j) -> (j, i) : memref<128x96xf16> to memref<96x128xf16, strided<[1, 96]>>
  %c = memref.collapse_shape %C [[0, 1], [2]] : memref<4x16x128xf32> into memref<64x128xf32>
  linalg.matmul ins(%a, %b : memref<64x96xf16>, memref<96x128xf16, strided<[1, 96]>>) outs(%c : memref<64x128xf32>)
  return
}

// -----

// the sums are written to an expanded buffer
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: memref<64x96xf16>, %B: memref<96x128xf16>, %C: memref<8192xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<64x96xf16> to tensor<64x96xf16>
  %b = bufferization.to_tensor %B restrict : memref<96x128xf16> to tensor<96x128xf16>
  %c = memref.expand_shape %C [[0, 1]] output_shape [64, 128] : memref<8192xf32> into memref<64x128xf32>
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  bufferization.materialize_in_destination %p in restrict writable %c : (tensor<64x128xf32>, memref<64x128xf32>) -> ()
  return
}

// -----

// batch_matmul with a batch of 1
// computes: C = AB, 1 x 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<1x64x96xf16>, %B: tensor<1x96x128xf16>) -> tensor<1x64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x128xf32>) -> tensor<1x64x128xf32>
  %p = linalg.batch_matmul ins(%A, %B : tensor<1x64x96xf16>, tensor<1x96x128xf16>) outs(%start : tensor<1x64x128xf32>) -> tensor<1x64x128xf32>
  return %p : tensor<1x64x128xf32>
}

// -----

// batch_reduce_matmul with a batch of 1
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<1x64x96xf16>, %B: tensor<1x96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.batch_reduce_matmul ins(%A, %B : tensor<1x64x96xf16>, tensor<1x96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// batch_matmul with one weight for all, repeated
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%x: tensor<4x16x96xf16>, %B: tensor<96x128xf16>) -> tensor<4x16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %e = tensor.empty() : tensor<4x96x128xf16>
  %b = linalg.broadcast ins(%B : tensor<96x128xf16>) outs(%e : tensor<4x96x128xf16>) dimensions = [0]
  %p = linalg.batch_matmul ins(%x, %b : tensor<4x16x96xf16>, tensor<4x96x128xf16>) outs(%start : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  return %p : tensor<4x16x128xf32>
}

// -----

// einsum with dimensions of 1
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<1x64x1x96xf16>, %B: tensor<96x1x128xf16>) -> tensor<1x64x128x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x128x1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x128x1xf32>) -> tensor<1x64x128x1xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k, o, q) -> (b, m, o, k)>, affine_map<(b, m, n, k, o, q) -> (k, q, n)>, affine_map<(b, m, n, k, o, q) -> (b, m, n, o)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel", "reduction"]}
      ins(%A, %B : tensor<1x64x1x96xf16>, tensor<96x1x128xf16>) outs(%start : tensor<1x64x128x1xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %w = arith.mulf %u, %v : f32
    %s = arith.addf %z, %w : f32
    linalg.yield %s : f32
  } -> tensor<1x64x128x1xf32>
  return %p : tensor<1x64x128x1xf32>
}

// -----

// mmt4d with tiles of 1
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96x1x1xf16>, %B: tensor<128x96x1x1xf16>) -> tensor<64x128x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128x1x1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128x1x1xf32>) -> tensor<64x128x1x1xf32>
  %p = linalg.mmt4d ins(%A, %B : tensor<64x96x1x1xf16>, tensor<128x96x1x1xf16>) outs(%start : tensor<64x128x1x1xf32>) -> tensor<64x128x1x1xf32>
  return %p : tensor<64x128x1x1xf32>
}

// -----

// vecmat
// computes: C = AB, 1 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<96xf16>, %B: tensor<96x128xf16>) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128xf32>) -> tensor<128xf32>
  %p = linalg.vecmat ins(%A, %B : tensor<96xf16>, tensor<96x128xf16>) outs(%start : tensor<128xf32>) -> tensor<128xf32>
  return %p : tensor<128xf32>
}

// -----

// matvec
// computes: C = AB, 1 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), B column-major; a is 1, b is 0, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96xf16>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %p = linalg.matvec ins(%A, %B : tensor<64x96xf16>, tensor<96xf16>) outs(%start : tensor<64xf32>) -> tensor<64xf32>
  return %p : tensor<64xf32>
}

// -----

// A and B extended to f32
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a_e = tensor.empty() : tensor<64x96xf32>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<64x96xf16>) outs(%a_e : tensor<64x96xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<64x96xf32>
  %b_e = tensor.empty() : tensor<96x128xf32>
  %b = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%B : tensor<96x128xf16>) outs(%b_e : tensor<96x128xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<96x128xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// bf16 extended to f32, rounded to bf16
// computes: C = AB, 64 x 128 x 96, bf16 x bf16 -> bf16 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xbf16>, %B: tensor<96x128xbf16>) -> tensor<64x128xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a_e = tensor.empty() : tensor<64x96xf32>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<64x96xbf16>) outs(%a_e : tensor<64x96xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %t = arith.extf %x : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<64x96xf32>
  %b_e = tensor.empty() : tensor<96x128xf32>
  %b = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%B : tensor<96x128xbf16>) outs(%b_e : tensor<96x128xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %t = arith.extf %x : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<96x128xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r_e = tensor.empty() : tensor<64x128xbf16>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%r_e : tensor<64x128xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %t = arith.truncf %x : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x128xbf16>
  return %r : tensor<64x128xbf16>
}

// -----

// i8 extended to i32
// computes: C = AB, 64 x 128 x 128, i8 x i8 -> i32 (i32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x128xi8>, %B: tensor<128x128xi8>) -> tensor<64x128xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<64x128xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<64x128xi32>) -> tensor<64x128xi32>
  %a_e = tensor.empty() : tensor<64x128xi32>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<64x128xi8>) outs(%a_e : tensor<64x128xi32>) {
  ^bb0(%x: i8, %y: i32):
    %t = arith.extsi %x : i8 to i32
    linalg.yield %t : i32
  } -> tensor<64x128xi32>
  %b_e = tensor.empty() : tensor<128x128xi32>
  %b = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%B : tensor<128x128xi8>) outs(%b_e : tensor<128x128xi32>) {
  ^bb0(%x: i8, %y: i32):
    %t = arith.extsi %x : i8 to i32
    linalg.yield %t : i32
  } -> tensor<128x128xi32>
  %p = linalg.matmul ins(%a, %b : tensor<64x128xi32>, tensor<128x128xi32>) outs(%start : tensor<64x128xi32>) -> tensor<64x128xi32>
  return %p : tensor<64x128xi32>
}

// -----

// zeros from a constant
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %start = arith.constant dense<0.0> : tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// nn.Linear of torch-mlir, without its bias
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f16 (f32 accumulation), B column-major; a is 0, b is 1, c is 2
func.func @f(%input: tensor<4x16x96xf16>, %weight: tensor<128x96xf16>) -> tensor<4x16x128xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x2 = tensor.collapse_shape %input [[0, 1], [2]] : tensor<4x16x96xf16> into tensor<64x96xf16>
  %w_e = tensor.empty() : tensor<96x128xf16>
  %w = linalg.transpose ins(%weight : tensor<128x96xf16>) outs(%w_e : tensor<96x128xf16>) permutation = [1, 0]
  %a_e = tensor.empty() : tensor<64x96xf32>
  %a = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x2 : tensor<64x96xf16>) outs(%a_e : tensor<64x96xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<64x96xf32>
  %b_e = tensor.empty() : tensor<96x128xf32>
  %b = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<96x128xf16>) outs(%b_e : tensor<96x128xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<96x128xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %rounded_e = tensor.empty() : tensor<64x128xf16>
  %rounded = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%rounded_e : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %r = tensor.expand_shape %rounded [[0, 1], [2]] output_shape [4, 16, 128] : tensor<64x128xf16> into tensor<4x16x128xf16>
  return %r : tensor<4x16x128xf16>
}

// -----

// einsum of torch-mlir, five dimensions transposed around a batch of 1
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%x: tensor<4x16x12x8xf16>, %w: tensor<12x8x128xf16>) -> tensor<4x16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %x5 = tensor.expand_shape %x [[0], [1], [2], [3, 4]] output_shape [4, 16, 12, 8, 1] : tensor<4x16x12x8xf16> into tensor<4x16x12x8x1xf16>
  %xt_e = tensor.empty() : tensor<1x4x16x12x8xf16>
  %xt = linalg.transpose ins(%x5 : tensor<4x16x12x8x1xf16>) outs(%xt_e : tensor<1x4x16x12x8xf16>) permutation = [4, 0, 1, 2, 3]
  %a = tensor.collapse_shape %xt [[0], [1, 2], [3, 4]] : tensor<1x4x16x12x8xf16> into tensor<1x64x96xf16>
  %w5 = tensor.expand_shape %w [[0, 1], [2, 3], [4]] output_shape [12, 1, 8, 1, 128] : tensor<12x8x128xf16> into tensor<12x1x8x1x128xf16>
  %wt_e = tensor.empty() : tensor<1x12x8x1x128xf16>
  %wt = linalg.transpose ins(%w5 : tensor<12x1x8x1x128xf16>) outs(%wt_e : tensor<1x12x8x1x128xf16>) permutation = [1, 0, 2, 3, 4]
  %b = tensor.collapse_shape %wt [[0], [1, 2, 3], [4]] : tensor<1x12x8x1x128xf16> into tensor<1x96x128xf16>
  %empty = tensor.empty() : tensor<1x64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x128xf32>) -> tensor<1x64x128xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<1x64x96xf16>, tensor<1x96x128xf16>) outs(%start : tensor<1x64x128xf32>) -> tensor<1x64x128xf32>
  %r = tensor.expand_shape %p [[0], [1, 2], [3]] output_shape [1, 4, 16, 128] : tensor<1x64x128xf32> into tensor<1x4x16x128xf32>
  %s = tensor.collapse_shape %r [[0, 1], [2], [3]] : tensor<1x4x16x128xf32> into tensor<4x16x128xf32>
  return %s : tensor<4x16x128xf32>
}

// -----

// slices that take everything, casts that change nothing
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 3
func.func @f(%A: tensor<1x64x96xf16>, %B: tensor<96x128xf16>, %unused: tensor<7xf32>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a = tensor.extract_slice %A[0, 0, 0] [1, 64, 96] [1, 1, 1] : tensor<1x64x96xf16> to tensor<64x96xf16>
  %b = tensor.cast %B : tensor<96x128xf16> to tensor<96x128xf16>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// a copy of A
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x96xf16>
  %a = linalg.copy ins(%A : tensor<64x96xf16>) outs(%e : tensor<64x96xf16>) -> tensor<64x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %p : tensor<64x128xf32>
}

// -----

// sums in a transposed C
// computes: C = AB + C, 128 x 64 x 96, f16 x f16 -> f32 (f32 accumulation), A and B column-major; a is 1, b is 0, c is 2
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %C: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %c_e = tensor.empty() : tensor<64x128xf32>
  %c = linalg.transpose ins(%C : tensor<128x64xf32>) outs(%c_e : tensor<64x128xf32>) permutation = [1, 0]
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%c : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r_e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.transpose ins(%p : tensor<64x128xf32>) outs(%r_e : tensor<128x64xf32>) permutation = [1, 0]
  return %r : tensor<128x64xf32>
}

// -----

// dimensions joined and split again elsewhere
// computes: C = AB, 64 x 128 x 96, f16 x f16 -> f32 (f32 accumulation); a is 0, b is 1, c is 2
func.func @f(%A: tensor<8x8x8x12xf16>, %B: tensor<96x128xf16>) -> tensor<4x16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %a = tensor.collapse_shape %A [[0, 1], [2, 3]] : tensor<8x8x8x12xf16> into tensor<64x96xf16>
  %p = linalg.matmul ins(%a, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [4, 16, 128] : tensor<64x128xf32> into tensor<4x16x128xf32>
  return %r : tensor<4x16x128xf32>
}

// -----

// A times A
// computes: C = AB, 128 x 128 x 128, f16 x f16 -> f32 (f32 accumulation), B is A's buffer; ab is 0, c is 1
func.func @f(%A: tensor<128x128xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %p = linalg.matmul ins(%A, %A : tensor<128x128xf16>, tensor<128x128xf16>) outs(%start : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %p : tensor<128x128xf32>
}

// -----

// A times its transpose
// computes: C = AB, 128 x 128 x 64, f16 x f16 -> f32 (f32 accumulation), B column-major, B is A's buffer; ab is 0, c is 1
func.func @f(%A: tensor<128x64xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %t_e = tensor.empty() : tensor<64x128xf16>
  %t = linalg.transpose ins(%A : tensor<128x64xf16>) outs(%t_e : tensor<64x128xf16>) permutation = [1, 0]
  %p = linalg.matmul ins(%A, %t : tensor<128x64xf16>, tensor<64x128xf16>) outs(%start : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %p : tensor<128x128xf32>
}

// -----

// the transpose of A times A, on buffers
// computes: C = AB + C, 128 x 128 x 64, f16 x f16 -> f32 (f32 accumulation), A column-major, B is A's buffer; ab is 1, c is 0
func.func @f(%C: memref<128x128xf32>, %A: memref<4x16x128xf16>) {
  linalg.contract indexing_maps = [
      affine_map<(m, n, b, s) -> (b, s, m)>, affine_map<(m, n, b, s) -> (b, s, n)>, affine_map<(m, n, b, s) -> (m, n)>]
      ins(%A, %A : memref<4x16x128xf16>, memref<4x16x128xf16>) outs(%C : memref<128x128xf32>)
  return
}
