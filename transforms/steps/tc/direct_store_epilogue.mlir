// Writes C from the registers that hold the sums, two neighbours in a row at a time.
//
// The plain epilogue: no shared memory, no barriers. A warp writes 32 bytes of each of eight rows at once. Sums are
// rounded to C's type, or added to C, on the way; where a tile reaches beyond C, rows and columns are compared with its
// edges. Partial sums in memory (`split_k`) are written as threads hold them, two pairs at a time.
//
// Source: Ozen, "Hopper GEMM in MLIR", whose kernels store each thread's fragments.
//
// Before:
//   nvgpu.warpgroup.mma.store %acc, %sums
//   linalg.copy ins(%sums : ...) outs(%c_tile : ...)
// After:
//   %pair = vector.extract %held[0, 5, 1] : vector<2xf32> from vector<1x32x2x2xf32>
//   vector.store %pair, %c_tile[%row, %column]
//   ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @direct_store_epilogue(%module: !transform.any_op {transform.readonly}) {
    "tc.direct_store_epilogue"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
