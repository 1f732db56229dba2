// Copies a matrix that an epilogue reads with the L2 cache hint `evict_first`, since a kernel reads it once.
//
// The matrix of a residual connection is as large as C, and a kernel reads each of its elements once. In the L2 cache,
// its lines evict lines of A and B, which several blocks read. With the hint, they are evicted first. The step uses the
// hint only where each copy reads whole lines of 128 bytes, which depends on the lengths of the rows of C and of the
// boxes: otherwise a line is read twice, in parts. It does not use the hint where all matmuls of a batch read one
// matrix.
//
// Left out: the copies have no cache hint.
//
// Source: PTX ISA, "Cache Eviction Priority Hints". The ops of NVGPU and NVVM that copy by `cp.async` have no operand
// for a hint.
//
// Before:
//   nvvm.cp.async.shared.global %box, %matrix, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
// After:
//   %evict_first = llvm.mlir.constant(0x12F0000000000000 : i64)
//   nvvm.inline_ptx "cp.async.cg.shared.global.L2::cache_hint [%box], [%matrix], 16, %evict_first;"

module attributes {transform.with_named_sequence} {
  transform.named_sequence @evict_copies_first(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.evict_copies_first"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
