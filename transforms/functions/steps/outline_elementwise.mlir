// Outlines each remaining linalg op of a function to a function of its own.
//
// The function then consists of calls, one for each kernel, in the order of their launches. The reshapes and slices of
// its operands move with a linalg op, so that values between kernels are whole buffers. Contiguous parts of arguments,
// such as the weights of one layer in a buffer of all layers, stay in the caller: kernels are launched on their
// addresses, and are equal for all layers. The arguments of the new functions are read-only: bufferization gives each
// result a buffer of its own. If an elementwise op reads the result of another one at the same elements, and other ops
// read it too, one kernel computes both and writes both results.
//
// Before:
//   %flat = tensor.collapse_shape %h [[0, 1], [2]] : tensor<2x4x256xf16> into tensor<8x256xf16>
//   %y = linalg.generic ... ins(%flat : tensor<8x256xf16>) ...
// After:
//   %y = call @mlp_elementwise_0(%h) : (tensor<2x4x256xf16>) -> tensor<8x256xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_elementwise(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    // A slice of a slice becomes one.
    %funcs = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %funcs {
      transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
    } : !transform.any_op
    "tc.join_elementwise"(%module) {at_most = 4 : i64} : (!transform.any_op) -> ()
    "tc.outline_elementwise"(%module) : (!transform.any_op) -> ()
    %left = transform.apply_registered_pass "canonicalize" to %module : (!transform.any_op) -> !transform.any_op
    transform.yield %left : !transform.any_op
  }
}
