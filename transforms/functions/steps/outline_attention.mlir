// Outlines each attention of a function to a function of its own, where one kernel computes it.
//
// An attention is a product of queries and keys, a softmax along the keys, and a product with the values. As three
// kernels, the scores and their softmax are written to memory and read again: 268 MB each for 2048 tokens and 32 heads
// in bf16. One kernel keeps a tile of them in registers. Elementwise ops on the scores, such as a scale and a mask,
// belong to it, and so does the rounding of the result. The operands are tensors with the axes in any order, the head's
// innermost: nothing is transposed, and heads of queries that share keys read the same ones. The step first brings
// attentions of torch-mlir and JAX to this form: it replaces operands of the products by the tensors that transposes,
// copies and extensions to f32 read, orders the axes as they are read, and fuses elementwise ops. Slices of a tensor,
// such as the queries, keys and values of one projection, become part of the function, which reads the tensor.
//
// Before:
//   %s = linalg.contract ... ins(%q, %k : ...) outs(%zeros : tensor<8x4x2048x2048xf32>)
//   %p = ... the softmax of %s, rounded : tensor<8x4x2048x2048xbf16>
//   %o = linalg.contract ... ins(%p, %v : ...) outs(%0 : tensor<2048x8x4x128xf32>)
//   %y = linalg.generic ... ins(%o) { arith.truncf } -> tensor<2048x8x4x128xbf16>
// After:
//   %y = call @f_attention_0(%q, %k, %v) : (tensor<2048x8x4x128xbf16>, tensor<2048x8x128xbf16>, ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_attention(%module: !transform.any_op {transform.readonly}) {
    // The positions of a causal mask, which its rows and columns share, are computed for each.
    "tc.repeat_positions"(%module) : (!transform.any_op) -> ()
    "tc.outline_attention"(%module) {columns = 128 : i64} : (!transform.any_op) -> ()
    %functions = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_dce to %functions : !transform.any_op
    transform.yield
  }
}
