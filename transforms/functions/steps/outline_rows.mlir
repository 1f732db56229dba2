// Outlines each chain of linalg ops over the same rows to a function of its own.
//
// A softmax is a maximum, a sum and a division, all along rows; a layer norm is two sums and what is computed with
// them. As separate kernels, they read and write rows in memory between the kernels. In one kernel, a row is read from
// memory once and written once, and intermediate values are in registers. Elementwise ops that compute the input of a
// chain, and those that read its results row by row, such as a residual, belong to it.
//
// Before:
//   %max = linalg.generic ... ins(%x) outs(%low : tensor<128xf32>) { arith.maximumf }
//   %sum = linalg.generic ... ins(%x, %max) outs(%zero : tensor<128xf32>) { arith.subf, math.exp, arith.addf }
//   %y = linalg.generic ... ins(%x, %max, %sum) outs(%empty : tensor<128x64xf16>) { arith.subf, math.exp, arith.divf }
// After:
//   %y = call @attention_rows_0(%x) : (tensor<128x64xf32>) -> tensor<128x64xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_rows(%module: !transform.any_op {transform.readonly}) {
    "tc.outline_rows"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
