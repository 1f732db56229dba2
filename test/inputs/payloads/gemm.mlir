// C = alpha AB + beta C of BLAS: the function takes alpha and beta as numbers.
func.func @gemm(%alpha: f32, %A: memref<100x72xf16>, %B: memref<72x80xf16>, %beta: f32, %C: memref<100x80xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<100x72xf16> to tensor<100x72xf16>
  %b = bufferization.to_tensor %B restrict : memref<72x80xf16> to tensor<72x80xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<100x80xf32> to tensor<100x80xf32>
  %e = tensor.empty() : tensor<100x80xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<100x80xf32>) -> tensor<100x80xf32>
  %sums = linalg.matmul ins(%a, %b : tensor<100x72xf16>, tensor<72x80xf16>) outs(%z : tensor<100x80xf32>)
      -> tensor<100x80xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<100x80xf32>) outs(%c : tensor<100x80xf32>) {
  ^bb0(%x: f32, %y: f32):
    %ax = arith.mulf %alpha, %x : f32
    %by = arith.mulf %beta, %y : f32
    %s = arith.addf %ax, %by : f32
    linalg.yield %s : f32
  } -> tensor<100x80xf32>
  bufferization.materialize_in_destination %scaled in restrict writable %C
      : (tensor<100x80xf32>, memref<100x80xf32>) -> ()
  return
}
