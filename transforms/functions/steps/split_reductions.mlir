// Divides reductions with few results and many terms into parts, which further kernels reduce.
//
// A warp or a block computes a result, and loads one part of its terms after the other. With few results, such as the
// sum of all elements of a matrix, its largest magnitude, or the means of the channels of images, most multiprocessors
// are idle meanwhile. The parts of a divided reduction have as many results as the threads of a GPU can compute at the
// same time, and a second reduction adds them. Parts are whole iterations of outer loops, or of a loop that is divided,
// so that the rows of operands stay vectors. Where neighbouring results are no vectors, such as the sums of three
// columns, neighbouring rows are the parts, so that threads load vectors of several rows. Sums of 16-bit numbers are
// f32 between the reductions, and rounded at the end.
//
// Before:
//   %s = linalg.generic ... ins(%x : tensor<4096x4096xf16>) outs(%zero : tensor<f32>) { arith.extf, arith.addf }
// After:
//   %p = linalg.generic ... ins(%x : tensor<4096x4096xf16>) outs(%zeros : tensor<4096xf32>) { arith.extf, arith.addf }
//   %s = linalg.generic ... ins(%p : tensor<4096xf32>) outs(%zero : tensor<f32>) { arith.addf }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @split_reductions(%module: !transform.any_op {transform.readonly}) {
    "tc.split_reductions"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
