// Distributes the elementwise op on a warp's product over the lanes, which read the product from shared memory.
//
// The layout of a WMMA fragment in registers is not documented, so that an op with a bias or a matrix cannot be
// computed on fragments. Fragments are stored to shared memory and read back by row and column. Upstream's
// `gpu.subgroup_mma_elementwise` computes sums, products and extrema of fragments, but neither functions nor rounding
// to a narrower type. A lane computes four adjacent elements at a time. The elements of a warp are adjacent, so that
// its accesses to C and to a matrix cover whole sectors. The lanes with vectors of the same row or column fold
// reductions of it; the partial results are folded as in `convert_to_mma_sync`.
//
// Source: the epilogue of CUTLASS's WMMA kernels goes through shared memory for the same reason.
//
// Before, with warp tiles of 64 x 64:
//   func.call @consumer(%tile, %warp_row, %warp_column, %c_tile) {operand_c}
// After:
//   gpu.barrier
//   affine.for %i = 0 to 32 {
//     %row, %column = (%i * 32 + %lane) / 16, (%i * 32 + %lane) mod 16 * 4
//     %x = vector.load %tile[%warp_row + %row, %warp_column + %column] : memref<128x128xf32, ...>, vector<4xf32>
//     %y = arith.maximumf %x, %zeros : vector<4xf32>
//     %z = arith.truncf %y : vector<4xf32> to vector<4xf16>
//     vector.store %z, %c_tile[%row, %column]
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_consumer_to_lanes(%module: !transform.any_op {transform.readonly}) {
    // Where tiles have edges, the copy of C = AB is such an op too.
    "tc.map_consumer_to_lanes"(%module) {width = 4 : i64} : (!transform.any_op) -> ()
    transform.tune.alternatives<"has_consumer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_consumer or has_edges"}} {
    }, {
      %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
