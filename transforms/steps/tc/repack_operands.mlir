// Reads A and B, where their rows are no multiple of 16 bytes, from padded copies in workspaces.
//
// TMA takes row pitches that are multiples of 16 bytes. A matrix of 8191 columns of f16 has rows of 16382 bytes:
// without TMA each element of a tile is a load of its own, and cuBLAS falls to about a fifth of its speed there. A copy
// to rows that are multiples of 128 bytes, the lines of the L2 cache, reads and writes each element once, while the
// matmul reads it many times. The matmul takes the view of the copy that has the extents of the matrix, so that TMA
// fills what is beyond them with zeros, and the padding is never written.
//
// `map_repacking_to_threads` makes a kernel of each copy. Operands whose rows TMA takes stay where they are, and so
// does C: `tma_store_epilogue` is not for an odd pitch of C, and `direct_store_epilogue` stores its elements one by
// one.
//
// Source: padding of leading dimensions in front of a matmul, as BLAS libraries do it for their own kernels.
//
// Before:
//   %a = bufferization.to_tensor %A restrict : memref<4096x8191xf16> to tensor<4096x8191xf16>
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)
// After:
//   %alloc = memref.alloc() {workspace} : memref<4096x8192xf16>
//   %matrix = memref.subview %alloc[0, 0] [4096, 8191] [1, 1]
//       : memref<4096x8192xf16> to memref<4096x8191xf16, strided<[8192, 1]>>
//   memref.copy %A, %matrix {workspace}
//   %a = bufferization.to_tensor %matrix restrict : memref<4096x8191xf16, strided<[8192, 1]>> to tensor<4096x8191xf16>
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @repack_operands(%module: !transform.any_op {transform.readonly}) {
    "tc.repack_operands"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
