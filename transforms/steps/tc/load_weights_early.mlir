// Loads the first tiles of the larger operand before the previous kernel has ended.
//
// A product of few rows reads each weight once, so that it is bound by HBM bandwidth. Between two such kernels HBM is
// idle: with dependent launch, blocks of the second kernel start while those of the first end, but wait for all of them
// before they load. The first kernel may write the A of the second, but no kernel of a model writes its weights. The
// producer therefore loads weights to all stages of the pipeline before the wait, and tiles of A after it. The loads
// are issued first in a block: its producer initializes the mbarriers itself, and waits for no other thread.
//
// This relies on a promise that the launcher has to keep. The manifest names the arguments (`read_early`), and its
// field `dependent_launch` is false: a launcher lets the kernel start early only where it knows that no kernel that may
// still run writes them. The next launch is triggered after the wait, not before it, so that all but the previous
// kernel have ended when a kernel starts.
//
// Left out: weights are loaded after the wait, as A is.
//
// Source: CUTLASS example 63 (hopper_gemm_with_weight_prefetch), which prefetches weights to L2 or shared memory before
// the wait.
//
// Before:
//   scf.if %first { nvgpu.mbarrier.init ... }
//   gpu.barrier
//   nvvm.griddepcontrol launch_dependents
//   nvvm.griddepcontrol wait
//   scf.if %is_producer { scf.if %leader {
//     scf.for %k = 0 to %end step 128 { wait empty; expect bytes of both; load %B_map; load %A_map }
//   } } else { ... }
// After, with stages = 8 and B the larger operand:
//   scf.if %leader {
//     nvgpu.mbarrier.init ...
//     scf.for %k = 0 to min(%end, 1024) step 128 { expect bytes of both; load %B_map }
//   }
//   gpu.barrier
//   nvvm.griddepcontrol wait
//   nvvm.griddepcontrol launch_dependents
//   scf.if %is_producer { scf.if %leader {
//     scf.for %k = 0 to %end step 128 {
//       wait empty
//       scf.if %k >= min(%end, 1024) { expect bytes of both; load %B_map }
//       load %A_map
//     }
//   } } else { ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @load_weights_early(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["enable_dependent_launch", "specialize_warps"],
                  left_out = {early_weights = false}, when = "early_weights", requires = [
        {condition = "tile_scheduler == 'data_parallel'",
         message = "early_weights requires tile_scheduler = data_parallel"},
        {condition = "prefetch_steps == 0", message = "early_weights requires prefetch_steps = 0"},
        {condition = "dependent_launch", message = "early_weights requires dependent_launch = true"},
        {condition = "has_producer or a_matrices * m != b_matrices * n * products",
         message = "early_weights requires that A and B differ in size"},
        {condition = "has_producer or windows or weight_row_bits % 128 == 0",
         message = "early_weights requires that the larger operand has rows of multiples of 16 bytes"},
        {condition = "not transposes_weights",
         message = "early_weights requires a K-major larger operand: a preceding kernel transposes it otherwise"},
        {condition = "not splits_weights",
         message = "early_weights requires that no preceding kernel splits the larger operand, as for f32"}
      ]} {
    "tc.load_weights_early"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
