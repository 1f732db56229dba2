// Outlines the ops whose results are written to the memory of donated arguments.
//
// A decoding step replaces one row of a cache. As a function on tensors it returns a new cache, for which a kernel
// would copy all of it. If the caller donates the memory of the old cache to the new one, a kernel writes only the row.
// The attribute `tf.aliasing_output` marks a donated argument, as JAX writes it for `donate_argnums`. The op becomes a
// separate kernel. A result that is not computed by an elementwise op from the same elements, or whose argument another
// op reads too, gets separate memory.
//
// Before:
//   func.func @step(%cache: tensor<8x64xf16> {tf.aliasing_output = 0 : i32}, %row: tensor<64xf16>, ...) {
//     %new = linalg.generic ... ins(%row, %cache) { arith.select (linalg.index 0 == %place), %row_element, %element }
//     return %new
// After:
//   %new = call @step_elementwise_0(%row, %cache)
//   return %new
//   func.func private @step_elementwise_0(..., %arg1: tensor<8x64xf16> {tf.aliasing_output = 0 : i32}) ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_in_place(%module: !transform.any_op {transform.readonly}) {
    "tc.outline_in_place"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
