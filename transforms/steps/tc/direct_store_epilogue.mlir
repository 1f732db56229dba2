// Stores C directly from the accumulator registers, two adjacent elements of a row at a time (epilogue).
//
// This is the simple epilogue, without shared memory or barriers. One store of a warp covers 32 bytes of each of eight
// rows. Before the store, the accumulator is rounded to C's type or added to C. Where a tile extends beyond C, stores
// are predicated on row and column. To a split-K workspace in global memory, accumulators are stored in register order,
// two pairs at a time. Reductions of rows or columns are folded in registers, as in `convert_to_mma_sync`.
//
// Source: Ozen, "Hopper GEMM in MLIR", whose kernels store each thread's fragments.
//
// Before:
//   nvgpu.warpgroup.mma.store %acc, %buffer
//   linalg.copy ins(%buffer : ...) outs(%c_tile : ...)
// After:
//   %pair = vector.extract %registers[0, 5, 1] : vector<2xf32> from vector<1x32x2x2xf32>
//   vector.store %pair, %c_tile[%row, %column]
//   ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @direct_store_epilogue(%module: !transform.any_op {transform.readonly}) {
    "tc.direct_store_epilogue"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
