// Rounds the weights of attentions to the type of the values.
//
// Front ends write the softmax of an attention in f32, and multiply its weights by values that they extend to f32. The
// kernel then multiplies each weight as two numbers of 16 bits: twice as many products. Most libraries round weights to
// the type of the values instead. The payload does not, so that this step runs only with `attention_weights = rounded`.
// A rounded weight has the relative error of a rounded result.
//
// Before:
//   %o = linalg.contract ... ins(%weights, %values : tensor<32x2048x2048xf32>, tensor<32x2048x128xbf16>) ...
// After:
//   %rounded = linalg.generic ... ins(%weights) { arith.truncf } -> tensor<32x2048x2048xbf16>
//   %o = linalg.contract ... ins(%rounded, %values : tensor<32x2048x2048xbf16>, tensor<32x2048x128xbf16>) ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @round_weights(%module: !transform.any_op {transform.readonly}) {
    "tc.round_weights"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
