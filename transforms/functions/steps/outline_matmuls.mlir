// Outlines each matmul of a function to a function of its own, with the ops around it that its kernel computes.
//
// A pipeline compiles a payload with one matmul; a function with several becomes calls of such payloads. A group of ops
// is a payload if the front accepts it: the layouts of A and B before the matmul, and the elementwise ops after it that
// the epilogue computes, as long as no other op reads the values between them. Reductions of rows or columns of these
// values are further results of the kernel. Elementwise ops that dequantize A or B are part of the group too (knob
// `dequantizing`). An op outside the groups becomes a kernel of its own later, which reads and writes its operands once
// more. Two matmuls of one A whose results an elementwise op combines, as in a gated layer, become one function (knob
// `pairs`). Upstream outlines loops, but not groups of ops.
//
// Source: the outlining of dispatch regions in IREE's dialect flow, by another rule.
//
// Before:
//   func.func @mlp(%x: tensor<4x128xf16>, %w: tensor<256x128xf16>, ...) -> ... {
//     %t = linalg.transpose ins(%w : tensor<256x128xf16>) ...
//     %sums = linalg.matmul ins(%x, %t : ...) outs(%zeros : tensor<4x256xf32>)
//     %h = linalg.generic ... ins(%sums : tensor<4x256xf32>) outs(%0 : tensor<4x256xf16>) { maximumf, truncf }
// After:
//   func.func @mlp(%x: tensor<4x128xf16>, %w: tensor<256x128xf16>, ...) -> ... attributes {has_stages} {
//     %h = call @mlp_matmul_0(%x, %w) : (tensor<4x128xf16>, tensor<256x128xf16>) -> tensor<4x256xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_matmuls(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    // What nothing reads goes, and what is computed twice is computed once.
    %clean = transform.apply_registered_pass "canonicalize" to %module : (!transform.any_op) -> !transform.any_op
    %shared = transform.apply_registered_pass "cse" to %clean : (!transform.any_op) -> !transform.any_op
    "tc.outline_matmuls"(%shared) {pairs = 1 : i64, dequantizing = 1 : i64, columns = 1 : i64,
        knobs = {pairs = "1 if pairs else 0", dequantizing = "1 if dequantizing else 0",
                 columns = "1 if columns else 0"}} : (!transform.any_op) -> ()
    %left = transform.apply_registered_pass "canonicalize" to %shared : (!transform.any_op) -> !transform.any_op
    transform.yield %left : !transform.any_op
  }
}
