// Lets the warpgroups of a block run out of step, and their copies overlap products.
//
// With a barrier in each iteration, all warpgroups start their products at the same time, and also their softmax,
// during which the tensor cores idle. An mbarrier per stage signals that all threads have copied their part of a tile.
// A thread arrives at it in the previous iteration, during the products with the values, and waits at the start of the
// iteration. Another warpgroup may still be multiplying by the values of the previous iteration, so that these have
// more than two stages: four, since the remainder by three takes many instructions. The copies begin after the products
// of queries and keys, which the tensor cores compute meanwhile.
//
// Left out: a barrier in each iteration keeps the warpgroups in step.
//
// Source: FlashAttention-3 (Shah et al., 2024), where a producer warp and mbarriers separate the warpgroups.
//
// Before:
//   scf.for %key ... {
//     nvvm.cp.async.wait.group 0; nvvm.fence.proxy; gpu.barrier
//     copy the next tiles
//     %s = nvgpu.warpgroup.mma %queries, %keys, %zeros {waitGroup = 0}
//     ... softmax; products with the values
//   }
// After:
//   nvvm.cp.async.wait.group 0; nvvm.fence.proxy; nvgpu.mbarrier.arrive %full[%c0]
//   scf.for %key ... {
//     nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks
//     %s = nvgpu.warpgroup.mma %queries, %keys, %zeros {waitGroup = 1}
//     copy the next tiles
//     nvvm.wgmma.wait.group.sync.aligned 0
//     ... softmax; products with the values
//     nvvm.cp.async.wait.group 0; nvvm.fence.proxy; nvgpu.mbarrier.arrive %full[%next]
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
