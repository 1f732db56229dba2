// Prefetches the first tiles of the larger operand to the L2 cache before the previous kernel has ended.
//
// A product of few rows reads each weight once: the rate of HBM bounds it. Between two such kernels HBM is idle: the
// last tiles are multiplied and summed, the first kernel ends, the second one starts, and its first loads take a
// latency. With dependent launch, a block of the second kernel that waits for the end of the first one has nothing to
// do. It cannot load: the previous kernel may still write what it would read. It can prefetch: a prefetch delivers no
// data, and the previous kernel writes to the same L2 cache that the loads read later. The first `prefetch_steps` k
// steps of a block then come from L2, and HBM is busy all the time.
//
// The next kernel is allowed to begin when the producers have issued their last loads, and no longer after the
// prologue: its prefetches queue behind these loads and not before them. Blocks of both kernels are on a multiprocessor
// at the same time if shared memory and registers allow it (`min_blocks_per_sm`).
//
// Before:
//   gpu.barrier
//   nvvm.griddepcontrol launch_dependents
//   nvvm.griddepcontrol wait
//   scf.if %is_producer { scf.if %leader { scf.for %k = 0 to %end step 128 { wait empty; loads } } } else { ... }
// After, with prefetch_steps = 8:
//   gpu.barrier
//   scf.if %leader {
//     scf.for %k = 0 to min(%end, 1024) step 128 { nvvm.cp.async.bulk.tensor.prefetch %a_map, box [%i, %k] }
//   }
//   nvvm.griddepcontrol wait
//   scf.if %is_producer {
//     scf.if %leader {
//       scf.for %k = 0 to %end step 128 { wait empty; loads }
//       nvvm.griddepcontrol launch_dependents
//     }
//   } else { ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prefetch_to_l2(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["enable_dependent_launch", "specialize_warps"],
                  left_out = {prefetch_steps = 0 : i64}, when = "prefetch_steps > 0", requires = [
        {condition = "tile_scheduler == 'data_parallel'",
         message = "with prefetch_steps above 0, tile_scheduler must be data_parallel"},
        {condition = "dependent_launch", message = "with prefetch_steps above 0, dependent_launch must be true"},
        {condition = "min_blocks_per_sm * (shared_bytes + 1024) <= shared_memory_limit + 1024",
         message = "with prefetch_steps above 0, min_blocks_per_sm blocks of shared_bytes and 1024 bytes each must fit"}
      ]} {
    "tc.prefetch_to_l2"(%module) {steps = 8 : i64, knobs = {steps = "prefetch_steps"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
