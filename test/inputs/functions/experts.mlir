// The experts of a mixture, with static numbers of tokens: an up and a down projection each.
func.func @experts(%x0: tensor<16x32xf16>, %x1: tensor<40x32xf16>, %x2: tensor<16x32xf16>,
    %u0: tensor<32x48xf16>, %u1: tensor<32x48xf16>, %u2: tensor<32x48xf16>,
    %d0: tensor<48x32xf16>, %d1: tensor<48x32xf16>, %d2: tensor<48x32xf16>)
    -> (tensor<16x32xf32>, tensor<40x32xf32>, tensor<16x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x48xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x48xf32>) -> tensor<16x48xf32>
  %e1 = tensor.empty() : tensor<40x48xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<40x48xf32>) -> tensor<40x48xf32>
  %f0 = tensor.empty() : tensor<16x32xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%f0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %f1 = tensor.empty() : tensor<40x32xf32>
  %y1 = linalg.fill ins(%zero : f32) outs(%f1 : tensor<40x32xf32>) -> tensor<40x32xf32>

  %p0 = linalg.matmul ins(%x0, %u0 : tensor<16x32xf16>, tensor<32x48xf16>) outs(%z0 : tensor<16x48xf32>)
    -> tensor<16x48xf32>
  %r0 = linalg.max ins(%p0, %z0 : tensor<16x48xf32>, tensor<16x48xf32>) outs(%e0 : tensor<16x48xf32>)
    -> tensor<16x48xf32>
  %h0 = arith.truncf %r0 : tensor<16x48xf32> to tensor<16x48xf16>
  %q0 = linalg.matmul ins(%h0, %d0 : tensor<16x48xf16>, tensor<48x32xf16>) outs(%y0 : tensor<16x32xf32>)
    -> tensor<16x32xf32>

  %p1 = linalg.matmul ins(%x1, %u1 : tensor<40x32xf16>, tensor<32x48xf16>) outs(%z1 : tensor<40x48xf32>)
    -> tensor<40x48xf32>
  %r1 = linalg.max ins(%p1, %z1 : tensor<40x48xf32>, tensor<40x48xf32>) outs(%e1 : tensor<40x48xf32>)
    -> tensor<40x48xf32>
  %h1 = arith.truncf %r1 : tensor<40x48xf32> to tensor<40x48xf16>
  %q1 = linalg.matmul ins(%h1, %d1 : tensor<40x48xf16>, tensor<48x32xf16>) outs(%y1 : tensor<40x32xf32>)
    -> tensor<40x32xf32>

  %p2 = linalg.matmul ins(%x2, %u2 : tensor<16x32xf16>, tensor<32x48xf16>) outs(%z0 : tensor<16x48xf32>)
    -> tensor<16x48xf32>
  %r2 = linalg.max ins(%p2, %z0 : tensor<16x48xf32>, tensor<16x48xf32>) outs(%e0 : tensor<16x48xf32>)
    -> tensor<16x48xf32>
  %h2 = arith.truncf %r2 : tensor<16x48xf32> to tensor<16x48xf16>
  %q2 = linalg.matmul ins(%h2, %d2 : tensor<16x48xf16>, tensor<48x32xf16>) outs(%y0 : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  return %q0, %q1, %q2 : tensor<16x32xf32>, tensor<40x32xf32>, tensor<16x32xf32>
}
