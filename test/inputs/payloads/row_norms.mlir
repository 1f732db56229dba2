// C = AB in f16, with the sum of squares of each row and the maximum of each column, of the sums in f32.
func.func @matmul(%A: tensor<256x64xf16>, %B: tensor<64x128xf16>)
    -> (tensor<256x128xf16>, tensor<256xf32>, tensor<128xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<256x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %sums = linalg.matmul ins(%A, %B : tensor<256x64xf16>, tensor<64x128xf16>) outs(%z : tensor<256x128xf32>)
      -> tensor<256x128xf32>
  %h = tensor.empty() : tensor<256x128xf16>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<256x128xf32>) outs(%h : tensor<256x128xf16>) {
  ^bb0(%x: f32, %out: f16):
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  } -> tensor<256x128xf16>
  %re = tensor.empty() : tensor<256xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%re : tensor<256xf32>) -> tensor<256xf32>
  %squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%sums : tensor<256x128xf32>) outs(%rz : tensor<256xf32>) {
  ^bb0(%x: f32, %so_far: f32):
    %y = arith.mulf %x, %x : f32
    %s = arith.addf %so_far, %y : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  %ce = tensor.empty() : tensor<128xf32>
  %cz = linalg.fill ins(%least : f32) outs(%ce : tensor<128xf32>) -> tensor<128xf32>
  %largest = linalg.reduce ins(%sums : tensor<256x128xf32>) outs(%cz : tensor<128xf32>) dimensions = [0]
    (%x: f32, %so_far: f32) {
      %s = arith.maximumf %so_far, %x : f32
      linalg.yield %s : f32
    }
  return %c, %squares, %largest : tensor<256x128xf16>, tensor<256xf32>, tensor<128xf32>
}
