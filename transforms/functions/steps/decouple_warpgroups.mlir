// Lets the warpgroups of a block be half an iteration apart: one computes exponentials while the other multiplies.
//
// With a barrier in each iteration, all warpgroups begin their products at one time, and their softmax too, beside which
// the tensor cores idle. An mbarrier for each stage tells that all threads have copied their part of a tile. A thread
// arrives at it in the middle of the iteration before, behind the softmax, and waits at the begin of the iteration:
// another warpgroup may be half an iteration behind. That one may read the tile of values of the iteration before, so that
// these have three stages. In the first iteration, the second warpgroup waits for the scores of the first.
//
// Source: FlashAttention-3 (Shah et al., 2024), the ping-pong of warpgroups.
//
// Before:
//   scf.for %key ... {
//     nvvm.cp.async.wait.group 0; nvvm.fence.proxy; gpu.barrier
//     copy the next tiles; scores; softmax
//     products with the values
//   }
// After:
//   nvvm.cp.async.wait.group 0; nvvm.fence.proxy; nvgpu.mbarrier.arrive %full[%c0]
//   scf.for %key ... {
//     nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks
//     copy the next tiles; scores; softmax
//     nvvm.cp.async.wait.group 0; nvvm.fence.proxy; nvgpu.mbarrier.arrive %full[%next]
//     products with the values
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @decouple_warpgroups(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["copy_tiles_ahead"]} {
    "tc.decouple_warpgroups"(%module) : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield
  }
}
