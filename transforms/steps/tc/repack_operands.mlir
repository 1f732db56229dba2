// Copies operands whose row pitch is not a multiple of 16 bytes to workspaces with padded rows, from which TMA reads
// them.
//
// TMA requires row pitches that are multiples of 16 bytes. A matrix of 8191 columns of f16 has rows of 16382 bytes:
// without TMA each element of a tile would be a separate load, and cuBLAS drops to about a fifth of its speed for such
// matrices. A copy to rows that are multiples of 128 bytes, the lines of the L2 cache, reads and writes each element
// once, while the matmul reads it many times. The matmul takes a view of the copy with the extents of the matrix: TMA
// fills elements beyond them with zeros, and the padding is never written.
//
// `map_repacking_to_threads` maps the copies to a kernel. Operands whose row pitch TMA accepts are not copied, and
// neither is C: for an odd pitch of C, `tma_store_epilogue` does not apply, and `row_store_epilogue` stores whole rows.
//
// Source: padding of leading dimensions before a matmul, as in BLAS libraries.
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
