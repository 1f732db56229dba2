// Stores and loads the matrices of a batch where they have several strides, such as the merged heads of sequences.
//
// A batch of the heads of several sequences has one index. In a C of merged heads (sequence, row, head, column), the
// stride between heads is the columns of a head, and the stride between sequences is all of a sequence's rows: a
// strided memref cannot have one dimension for both. Up to this step the product is a tensor of a batch that
// `tensor.reshape` divides before it is stored; here the loop over tiles gets C itself, and each tile is stored at the
// quotient and the remainder of its batch index. Later steps see a tile of a matrix with a row pitch, as that of any
// part of a buffer. C is only written.
//
// Likewise, an A or B of such a batch is a tensor with a dimension for each stride, which `tensor.reshape` joins: the
// slices that the loop takes become slices of the tensor itself. A matrix that several matmuls share has a dimension of
// stride 0, which is left out of the tensor.
//
// Upstream has no op that folds a reshape of a loop's result into the insertions of the loop.
//
// Before, with 2 sequences of 3 heads:
//   %all = scf.forall (%b, %i, %j) in (6, ...) shared_outs(%o = %empty) -> (tensor<6x40x24xf16>) {
//     tensor.parallel_insert_slice %tile into %o[%b, %row, %column] [1, 40, 24]
//   }
//   %divided = tensor.reshape %all(%extents) : (tensor<6x40x24xf16>, tensor<4xi64>) -> tensor<2x3x40x24xf16>
//   bufferization.materialize_in_destination %divided in restrict writable %heads
// After:
//   %c = bufferization.to_tensor %heads restrict writable
//   %all = scf.forall (%b, %i, %j) in (6, ...) shared_outs(%o = %c) -> (tensor<2x3x40x24xf16>) {
//     tensor.parallel_insert_slice %tile into %o[%b floordiv 3, %b mod 3, %row, %column] [1, 1, 40, 24]
//   }
//   bufferization.materialize_in_destination %all in restrict writable %heads

module attributes {transform.with_named_sequence} {
  transform.named_sequence @divide_batch_index(%module: !transform.any_op {transform.readonly}) {
    "tc.divide_batch_index"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
