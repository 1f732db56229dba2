// Moves each matmul of a function to a function of its own, with the ops around it that its kernel computes.
//
// A pipeline compiles a payload with one matmul. A function with several becomes calls of such payloads. A group of ops
// is a payload where the front accepts it: the layouts of A and B before the matmul, and behind it the elementwise ops
// that the epilogue computes, as long as nothing else reads the values between them. Reductions of rows or columns of
// these values are further results of the kernel. What is left out of a group is a kernel of its own later, which reads
// and writes its operands once more. Upstream outlines loops, and no groups of ops.
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
    "tc.outline_matmuls"(%shared) : (!transform.any_op) -> ()
    %left = transform.apply_registered_pass "canonicalize" to %shared : (!transform.any_op) -> !transform.any_op
    transform.yield %left : !transform.any_op
  }
}
