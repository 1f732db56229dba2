// Prefetches the first tiles of the larger operand to the L2 cache before the previous kernel has ended.
//
// A product of few rows reads each weight once, so that it is bound by HBM bandwidth. Between two such kernels HBM is
// idle, from the last load of the first kernel to the first load of the second: the MMAs of the last k steps, the
// epilogue, and the launch. With dependent launch, blocks of the second kernel wait for the end of the first one. They
// cannot load, because the first kernel may still write what they read. They can prefetch to L2: a prefetch delivers no
// data to the block, and the first kernel writes to the same L2 cache from which the loads read later. The loads of the
// first `prefetch_steps` k steps of a block then hit L2. Unlike `load_weights_early`, this needs no promise of the
// caller. The prefetches are issued first in a block: its producer initializes the mbarriers itself, and waits for no
// other thread.
//
// Blocks of both kernels are resident on a multiprocessor at the same time if shared memory and registers allow it
// (`min_blocks_per_sm`). The next launch is then triggered when the producers have issued their last loads, instead of
// after the prologue, so that its prefetches queue after these loads, not before them.
//
// Left out: nothing is prefetched before the wait.
//
// Before:
//   scf.if %first { nvgpu.mbarrier.init ... }
//   gpu.barrier
//   nvvm.griddepcontrol wait
//   nvvm.griddepcontrol launch_dependents
//   scf.if %is_producer { scf.if %leader { scf.for %k = 0 to %end step 128 { wait empty; loads } } } else { ... }
// After, with prefetch_steps = 4:
//   scf.if %leader {
//     nvgpu.mbarrier.init ...
//     scf.for %k = 0 to min(%end, 512) step 128 { nvvm.cp.async.bulk.tensor.prefetch %A_map, box [%i, %k] }
//   }
//   gpu.barrier
//   nvvm.griddepcontrol wait
//   nvvm.griddepcontrol launch_dependents
//   scf.if %is_producer { scf.if %leader { scf.for %k = 0 to %end step 128 { wait empty; loads } } } else { ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prefetch_to_l2(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["enable_dependent_launch", "specialize_warps"],
                  left_out = {prefetch_steps = 0 : i64}, when = "prefetch_steps > 0", requires = [
        {condition = "tile_scheduler == 'data_parallel'",
         message = "prefetch_steps above 0 requires tile_scheduler = data_parallel"},
        {condition = "dependent_launch", message = "prefetch_steps above 0 requires dependent_launch = true"},
        {condition = "min_blocks_per_sm * (shared_bytes + 1024) <= shared_memory_limit + 1024",
         message = "prefetch_steps above 0 requires shared memory for min_blocks_per_sm blocks (shared_bytes + 1024)"}
      ]} {
    "tc.prefetch_to_l2"(%module) {steps = 8 : i64, knobs = {steps = "prefetch_steps"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
