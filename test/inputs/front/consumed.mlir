// nn.Linear of torch-mlir
func.func @f(%input: tensor<4x16x96xf16>, %weight: tensor<128x96xf16>, %bias: tensor<128xf16>) -> tensor<4x16x128xf16> {
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
  %wide_e = tensor.empty() : tensor<128xf32>
  %wide = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%bias : tensor<128xf16>) outs(%wide_e : tensor<128xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<128xf32>
  %qe = tensor.empty() : tensor<64x128xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %wide : tensor<64x128xf32>, tensor<128xf32>) outs(%qe : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %rounded_e = tensor.empty() : tensor<64x128xf16>
  %rounded = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<64x128xf32>) outs(%rounded_e : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %r = tensor.expand_shape %rounded [[0, 1], [2]] output_shape [4, 16, 128] : tensor<64x128xf16> into tensor<4x16x128xf16>
  return %r : tensor<4x16x128xf16>
}

// -----

// nn.Linear and a ReLU with a constant from outside
func.func @f(%input: tensor<4x16x96xf16>, %weight: tensor<128x96xf16>, %bias: tensor<128xf16>) -> tensor<4x16x128xf16> {
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
  %wide_e = tensor.empty() : tensor<128xf32>
  %wide = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%bias : tensor<128xf16>) outs(%wide_e : tensor<128xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<128xf32>
  %qe = tensor.empty() : tensor<64x128xf32>
  %q0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %wide : tensor<64x128xf32>, tensor<128xf32>) outs(%qe : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%q0 : tensor<64x128xf32>) outs(%qe : tensor<64x128xf32>) {
  ^bb0(%x: f32, %z: f32):
    %t = arith.maximumf %x, %zero : f32
    linalg.yield %t : f32
  } -> tensor<64x128xf32>
  %rounded_e = tensor.empty() : tensor<64x128xf16>
  %rounded = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<64x128xf32>) outs(%rounded_e : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %r = tensor.expand_shape %rounded [[0, 1], [2]] output_shape [4, 16, 128] : tensor<64x128xf16> into tensor<4x16x128xf16>
  return %r : tensor<4x16x128xf16>
}

// -----

// a gate of the sums by a function of them
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x128xf32>
  %t = linalg.tanh ins(%p : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %q = linalg.mul ins(%p, %t : tensor<64x128xf32>, tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %q : tensor<64x128xf32>
}

// -----

// bias along the rows of a transposed result
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %bias: tensor<128xf32>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %pt_e = tensor.empty() : tensor<128x64xf32>
  %pt = linalg.transpose ins(%p : tensor<64x128xf32>) outs(%pt_e : tensor<128x64xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<128x64xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%pt, %bias : tensor<128x64xf32>, tensor<128xf32>) outs(%e : tensor<128x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<128x64xf32>
  return %q : tensor<128x64xf32>
}

// -----

// a transposed matrix added in three dimensions
func.func @f(%x3: tensor<4x16x96xf16>, %B: tensor<96x128xf16>, %D: tensor<128x4x16xf32>) -> tensor<4x16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %p = linalg.contract indexing_maps = [affine_map<(b, s, n, k) -> (b, s, k)>, affine_map<(b, s, n, k) -> (k, n)>, affine_map<(b, s, n, k) -> (b, s, n)>]
      ins(%x3, %B : tensor<4x16x96xf16>, tensor<96x128xf16>) outs(%start : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %e = tensor.empty() : tensor<4x16x128xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j, l) -> (i, j, l)>, affine_map<(i, j, l) -> (l, i, j)>, affine_map<(i, j, l) -> (i, j, l)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %D : tensor<4x16x128xf32>, tensor<128x4x16xf32>) outs(%e : tensor<4x16x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<4x16x128xf32>
  return %q : tensor<4x16x128xf32>
}

// -----

// a factor in a tensor of one number
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %scale: tensor<f32>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x128xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %scale : tensor<64x128xf32>, tensor<f32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.mulf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  return %q : tensor<64x128xf32>
}

// -----

// sums in C, then an activation to another tensor
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>, %C: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%C : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x128xf32>
  %q = linalg.exp ins(%p : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %q : tensor<64x128xf32>
}

// -----

// activation in place, without inputs
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%p : tensor<64x128xf32>) {
  ^bb0(%z: f32):
    %t = math.absf %z : f32
    linalg.yield %t : f32
  } -> tensor<64x128xf32>
  return %q : tensor<64x128xf32>
}

// -----

// activation in place on buffers, behind an exchanged product
func.func @f(%A: memref<64x96xf16>, %B: memref<96x128xf16>, %C: memref<128x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c = memref.collapse_shape %C [[0], [1, 2]] : memref<128x4x16xf32> into memref<128x64xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<128x64xf32>)
  linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%A, %B : memref<64x96xf16>, memref<96x128xf16>) outs(%c : memref<128x64xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(i, j, l) -> (i, j, l)>, affine_map<(i, j, l) -> (i, j, l)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%C : memref<128x4x16xf32>) outs(%C : memref<128x4x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %one : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// rounded twice, and what no one uses
func.func @f(%A: tensor<64x96xf16>, %B: tensor<96x128xf16>) -> tensor<64x128xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<64x96xf16>, tensor<96x128xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %unused_e = tensor.empty() : tensor<64x128xbf16>
  %unused = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%unused_e : tensor<64x128xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %t = arith.truncf %x : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x128xbf16>
  %h_e = tensor.empty() : tensor<64x128xf16>
  %h = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%h_e : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %w_e = tensor.empty() : tensor<64x128xf32>
  %w = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<64x128xf16>) outs(%w_e : tensor<64x128xf32>) {
  ^bb0(%x: f16, %y: f32):
    %t = arith.extf %x : f16 to f32
    linalg.yield %t : f32
  } -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x128xf16>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%e : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  return %q : tensor<64x128xf16>
}

// -----

// the sums of a linear layer, and their activation
func.func @f(%A: tensor<64x96xf16>, %W: tensor<128x96xf16>, %b: tensor<128xf16>) -> (tensor<4x16x128xf32>, tensor<64x128xf16>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %W : tensor<64x96xf16>, tensor<128x96xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<64x128xf32>, tensor<128xf16>) outs(%empty : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f16, %z: f32):
    %w = arith.extf %y : f16 to f32
    %t = arith.addf %x, %w : f32
    linalg.yield %t : f32
  } -> tensor<64x128xf32>
  %h = tensor.empty() : tensor<64x128xf16>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<64x128xf32>) outs(%h : tensor<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %m = arith.maximumf %x, %zero : f32
    %t = arith.truncf %m : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x128xf16>
  %shaped = tensor.expand_shape %s [[0, 1], [2]] output_shape [4, 16, 128] : tensor<64x128xf32> into tensor<4x16x128xf32>
  return %shaped, %q : tensor<4x16x128xf32>, tensor<64x128xf16>
}

// -----

// C is the second buffer that is written, since the sums begin from it
func.func @f(%A: memref<96x64xf16>, %B: memref<96x128xf16>, %D: memref<64x128xf16>, %C: memref<64x128xf32>) {
  linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : memref<96x64xf16>, memref<96x128xf16>) outs(%C : memref<64x128xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%C : memref<64x128xf32>) outs(%D : memref<64x128xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  }
  return
}

// -----

// C as it was, in the second result alone
func.func @f(%A: tensor<64x96xf16>, %W: tensor<128x96xf16>, %C: memref<64x128xf32>, %D: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %old = bufferization.to_tensor %C restrict writable : memref<64x128xf32> to tensor<64x128xf32>
  %empty = tensor.empty() : tensor<64x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %W : tensor<64x96xf16>, tensor<128x96xf16>) outs(%start : tensor<64x128xf32>) -> tensor<64x128xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x128xf32>) outs(%empty : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    %t = arith.maximumf %x, %zero : f32
    linalg.yield %t : f32
  } -> tensor<64x128xf32>
  %q = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %old : tensor<64x128xf32>, tensor<64x128xf32>) outs(%empty : tensor<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.subf %y, %x : f32
    linalg.yield %t : f32
  } -> tensor<64x128xf32>
  bufferization.materialize_in_destination %r in restrict writable %C : (tensor<64x128xf32>, memref<64x128xf32>) -> ()
  bufferization.materialize_in_destination %q in restrict writable %D : (tensor<64x128xf32>, memref<64x128xf32>) -> ()
  return
}

// -----

// a linear layer of three dimensions, its row sums, and the largest element of each column
func.func @f(%X: tensor<4x16x96xf16>, %W: tensor<128x96xf16>, %b: tensor<128xf32>)
    -> (tensor<128xf32>, tensor<4x16x128xf16>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<4x16x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %p = linalg.contract indexing_maps = [
      affine_map<(s, m, n, k) -> (s, m, k)>, affine_map<(s, m, n, k) -> (n, k)>, affine_map<(s, m, n, k) -> (s, m, n)>]
      ins(%X, %W : tensor<4x16x96xf16>, tensor<128x96xf16>) outs(%start : tensor<4x16x128xf32>) -> tensor<4x16x128xf32>
  %h = tensor.empty() : tensor<4x16x128xf16>
  %q = linalg.generic {
      indexing_maps = [affine_map<(s, i, j) -> (s, i, j)>, affine_map<(s, i, j) -> (j)>, affine_map<(s, i, j) -> (s, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %b : tensor<4x16x128xf32>, tensor<128xf32>) outs(%h : tensor<4x16x128xf16>) {
  ^bb0(%x: f32, %y: f32, %z: f16):
    %t = arith.addf %x, %y : f32
    %r = arith.truncf %t : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4x16x128xf16>
  %re = tensor.empty() : tensor<4x16xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%re : tensor<4x16xf32>) -> tensor<4x16xf32>
  %rows = linalg.generic {
      indexing_maps = [affine_map<(j, s, i) -> (s, i, j)>, affine_map<(j, s, i) -> (s, i)>],
      iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%q : tensor<4x16x128xf16>) outs(%rz : tensor<4x16xf32>) {
  ^bb0(%x: f16, %y: f32):
    %w = arith.extf %x : f16 to f32
    %t = arith.addf %y, %w : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  %ce = tensor.empty() : tensor<128xf32>
  %cz = linalg.fill ins(%least : f32) outs(%ce : tensor<128xf32>) -> tensor<128xf32>
  %columns = linalg.reduce ins(%p : tensor<4x16x128xf32>) outs(%cz : tensor<128xf32>) dimensions = [0, 1]
    (%x: f32, %so_far: f32) {
      %s = arith.maximumf %so_far, %x : f32
      linalg.yield %s : f32
    }
  return %columns, %q, %rows : tensor<128xf32>, tensor<4x16x128xf16>, tensor<4x16xf32>
}
