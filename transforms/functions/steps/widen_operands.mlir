// Casts operands of products of element types that no kernel multiplies.
//
// Matrix units multiply elements of one type. Both operands are extended to the narrowest type that represents all
// values of either: the wider one of the two, f32 for f16 and bf16. The extension is exact. It is a separate op, which
// `outline_matmuls` moves into the kernel of the matmul if that kernel can compute its operands. `wgmma` multiplies one
// type of fp8 by the other; for other pipelines (`mixed_fp8` is false) both become f16, and all fp8 where the target or
// the pipeline multiplies none (`multiplies_fp8` is false), or sums are of f16. On a GPU that does not multiply bf16
// (`multiplies_bf16` is false), operands that the payload extends from fp8 to bf16 become f16.
//
// With f64 accumulators, narrower operands are extended to f64. If the accumulators of a matmul are narrower than an
// operand, this operand is rounded first, also in a separate op.
//
// Values of f16, bf16 and fp8 fit in tf32. Where A and B of f32 are both extended from these types, by the step or by
// the payload, the product is marked `fits_tf32`: its kernel computes one exact product of tf32 in place of three.
//
// Before:
//   %c = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>)
// After:
//   %wide = linalg.generic ins(%a : tensor<8x16xf16>) outs(... : tensor<8x16xf32>) { arith.extf }
//   %c = linalg.generic ins(%wide, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros : ...) {
//     arith.mulf, arith.addf
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @widen_operands(%module: !transform.any_op {transform.readonly}) {
    "tc.widen_operands"(%module) {fp8 = 1 : i64, bf16 = 1 : i64,
        knobs = {fp8 = "(0 if mixed_fp8 else 1) if multiplies_fp8 else 2", bf16 = "1 if multiplies_bf16 else 0"}}
      : (!transform.any_op) -> ()
    transform.yield
  }
}
