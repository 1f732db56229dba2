// Rewrites contractions of transposed tensors to contractions of the original tensors.
//
// Front ends write the attention of a layer as a transpose of the projections, which moves the head dimension before
// the sequence, and a batch of matmuls. A transpose is a separate kernel, unless the matmul kernel reads the tensor in
// place. The keys and values that several heads share are then repeated before the matmuls, which would take another
// kernel. After this step, the contraction has the axes of the original tensor as its loops, so that
// `permute_contractions` can tell which operands TMA reads in place, and transposes the others.
//
// Before:
//   %t = linalg.transpose ins(%q : tensor<2x64x4x32xf16>) outs(... : tensor<2x4x64x32xf16>) permutation = [0, 2, 1, 3]
//   %a = tensor.collapse_shape %t [[0, 1], [2], [3]] : ... into tensor<8x64x32xf16>
//   %s = linalg.batch_matmul ins(%a, %b : ...) outs(%zeros : tensor<8x64x64xf32>)
// After:
//   %s = linalg.generic {indexing_maps = [(b, h, s, t, d) -> (b, s, h, d), ...]}
//       ins(%q, ... : tensor<2x64x4x32xf16>, ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @absorb_transposes(%module: !transform.any_op {transform.readonly}) {
    "tc.absorb_transposes"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
