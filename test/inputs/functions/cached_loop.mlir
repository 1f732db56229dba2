// Two layers by a loop over slices of their weights; a concatenation with what a cache holds, padded, and its product.
func.func @cached_loop(%x: tensor<16x32xf16>, %cache: tensor<24x32xf16>, %weights: tensor<2x32x32xf16>)
    -> (tensor<40x32xf16>, tensor<48x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<16x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = scf.for %i = %c0 to %c2 step %c1 iter_args(%h = %x) -> (tensor<16x32xf16>) {
    %w = tensor.extract_slice %weights[%i, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<2x32x32xf16> to tensor<32x32xf16>
    %sums = linalg.matmul ins(%h, %w : tensor<16x32xf16>, tensor<32x32xf16>) outs(%zeros : tensor<16x32xf32>)
      -> tensor<16x32xf32>
    %next = arith.truncf %sums : tensor<16x32xf32> to tensor<16x32xf16>
    scf.yield %next : tensor<16x32xf16>
  }
  %all = tensor.concat dim(0) %cache, %y : (tensor<24x32xf16>, tensor<16x32xf16>) -> tensor<40x32xf16>
  %padded = tensor.pad %all low[3, 0] high[5, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %none : f16
  } : tensor<40x32xf16> to tensor<48x32xf16>
  %1 = tensor.empty() : tensor<48x48xf32>
  %start = linalg.fill ins(%zero : f32) outs(%1 : tensor<48x48xf32>) -> tensor<48x48xf32>
  %gram = linalg.contract
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%padded, %padded : tensor<48x32xf16>, tensor<48x32xf16>) outs(%start : tensor<48x48xf32>) -> tensor<48x48xf32>
  return %all, %gram : tensor<40x32xf16>, tensor<48x48xf32>
}
