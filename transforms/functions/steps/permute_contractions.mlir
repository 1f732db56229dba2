// Transposes the operands of contractions whose dimensions are in an order that no kernel reads.
//
// The kernel of a matmul reads matrices: all dimensions of m next to each other, then all of k, or the reverse. An
// attention block computes its scores from tensors (batch, sequence, head, depth), where the sequence is between the
// dimensions of the batch. A transpose is a kernel that reads and writes the operand once; the matmul then runs on
// matrix units. If one of the two orders keeps the innermost dimension of a 16-bit operand, the step chooses it, so
// that threads copy vectors. The step does not change contractions that the front accepts. Where the pipelines read
// batches of several strides in place (`strided`), such an operand keeps its order, and the step marks the contraction
// for the front. A transpose of the result becomes part of the contraction where the front then accepts that: JAX
// writes the scores of heads that share keys in another order, and transposes them. Upstream's op transposes only to
// the order of one named op.
//
// Source: transpose-transpose-GEMM-transpose, as in the survey of tensor contractions by Springer and Bientinesi
// (2018).
//
// Before:
//   %s = linalg.contract indexing_maps = [(b, h, s, t, d) -> (b, s, h, d), (b, t, h, d), (b, h, s, t)]
//       ins(%q, %k : ...)
// After:
//   %qt = linalg.transpose ins(%q : tensor<2x64x4x32xf16>) outs(... : tensor<2x4x64x32xf16>) permutation = [0, 2, 1, 3]
//   %kt = linalg.transpose ins(%k : tensor<2x64x4x32xf16>) outs(... : tensor<2x4x64x32xf16>) permutation = [0, 2, 1, 3]
//   %s = linalg.generic {indexing_maps = [(b, h, s, t, d) -> (b, h, s, d), (b, h, t, d), (b, h, s, t)]}
//       ins(%qt, %kt ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @permute_contractions(%module: !transform.any_op {transform.readonly}) {
    "tc.permute_contractions"(%module) {in_place = 0 : i64, columns = 1 : i64, strided = 0 : i64,
        knobs = {in_place = "1 if in_place else 0", columns = "1 if columns else 0",
                 strided = "1 if strided else 0"}} : (!transform.any_op) -> ()
    // Initial values in the former order are left over.
    %functions = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_dce to %functions : !transform.any_op
    transform.yield
  }
}
