// Two quantized layers: zero points of both operands, and a clamp to i8 between them.
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%A: tensor<32x64xi8>, %B: tensor<64x64xi8>, %D: tensor<64x32xi8>) -> tensor<32x32xi32> {
  %za = arith.constant 3 : i32
  %zb = arith.constant -5 : i32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<32x64xi32>
  %st = linalg.fill ins(%zero : i32) outs(%e : tensor<32x64xi32>) -> tensor<32x64xi32>
  %p = linalg.quantized_matmul ins(%A, %B, %za, %zb : tensor<32x64xi8>, tensor<64x64xi8>, i32, i32) outs(%st : tensor<32x64xi32>) -> tensor<32x64xi32>
  %qe = tensor.empty() : tensor<32x64xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x64xi32>) outs(%qe : tensor<32x64xi8>) {
  ^bb0(%x: i32, %o: i8):
    %l = arith.constant -128 : i32
    %h = arith.constant 127 : i32
    %a = arith.maxsi %x, %l : i32
    %b = arith.minsi %a, %h : i32
    %r = arith.trunci %b : i32 to i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  %e2 = tensor.empty() : tensor<32x32xi32>
  %st2 = linalg.fill ins(%zero : i32) outs(%e2 : tensor<32x32xi32>) -> tensor<32x32xi32>
  %p2 = linalg.quantized_matmul ins(%q, %D, %zb, %za : tensor<32x64xi8>, tensor<64x32xi8>, i32, i32) outs(%st2 : tensor<32x32xi32>) -> tensor<32x32xi32>
  return %p2 : tensor<32x32xi32>
}
