// Computes the softmax of a tile of keys while the values of the tile before are multiplied.
//
// The products of an iteration wait for its softmax, and the softmax for its scores: without others, the tensor cores
// idle while a warpgroup computes exponentials. The step moves the products with the values to the next iteration,
// behind the begin of its scores: they run while the exponentials of that iteration are computed. The weights stay in
// registers from one iteration to the next, and the tile of values in a third stage.
//
// Source: FlashAttention-3 (Shah et al., 2024), the overlap of GEMMs and softmax in a warpgroup.
//
// Before:
//   scf.for %key ... {
//     %s = nvgpu.warpgroup.mma %queries, %keys, %zeros {waitGroup = 0}
//     %p = softmax of %s
//     %o2 = tc.warpgroup_mma_registers %p, %values, %o scaled
//     nvvm.wgmma.wait.group.sync.aligned 0
//   }
// After:
//   %p0 = softmax of the scores of the first tile
//   scf.for %key ... iter_args(%o, %p, ...) {
//     %s = nvgpu.warpgroup.mma %queries, %keys, %zeros {waitGroup = 1}
//     %o2 = tc.warpgroup_mma_registers %p, %values of the tile before, %o
//     nvvm.wgmma.wait.group.sync.aligned 8
//     %p2 = softmax of %s
//     nvvm.wgmma.wait.group.sync.aligned 0
//     %o2 scaled
//   }
//   tc.warpgroup_mma_registers %p, %values of the last tile, %o

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @overlap_softmax(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["copy_tiles_ahead"]} {
    "tc.overlap_softmax"(%module) : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield
  }
}
