// Collapses loops over neighbours in memory to one loop.
//
// The elements of a row-major buffer are one row: loops over its axes that all operands have next to each other, and in
// the same order, are one loop over it. A thread then needs fewer divisions to find its position, and a vector may span
// rows: rows of 1028 f16 are no vectors of 16 bytes, but 4096 of them are. Ops of a chain over the same rows keep the
// loops over the rows, and collapse those over the columns.
//
// Before:
//   linalg.generic ... ins(%x : memref<4096x1028xf16>) outs(%y : memref<4096x1028xf16>) { math.tanh }
// After:
//   %flat = memref.collapse_shape %x [[0, 1]] : memref<4096x1028xf16> into memref<4210688xf16>
//   linalg.generic ... ins(%flat : memref<4210688xf16>) outs(... : memref<4210688xf16>) { math.tanh }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @collapse_loops(%module: !transform.any_op {transform.readonly}) {
    %copies = transform.structured.match ops{["linalg.copy"]} in %module : (!transform.any_op) -> !transform.any_op
    %generic = transform.structured.generalize %copies : (!transform.any_op) -> !transform.any_op
    "tc.collapse_loops"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
