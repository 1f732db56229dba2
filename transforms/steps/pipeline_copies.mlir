// Pipelines the k loop in software: `cp.async` copies run `stages` - 1 tiles ahead of the products.
//
// While iteration i computes, the tiles of the next iterations are in flight, each in its own commit group. An
// iteration waits for its own group and leaves the later groups in flight. Copies beyond the last tile are predicated:
// they copy zero elements. One barrier per iteration suffices, because the stage that the copies overwrite was read one
// iteration earlier.
//
// Left out: each iteration issues its copies and waits for them before it computes.
//
// Before:
//   scf.for %k = 0 to 512 step 32 {
//     copy tile k; create_group; wait; gpu.barrier; compute tile k
//   }
// After, with stages = 3:
//   copy tile 0; create_group; copy tile 1; create_group
//   scf.for %k = 0 to 512 step 32 {
//     wait for tile k, 1 group in flight; gpu.barrier; compute tile k; copy tile k + 64; create_group
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @pipeline_copies(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["multi_buffer"], requires = [
        {condition = "stages >= 2", message = "stages must be at least 2"},
        {condition = "k <= block_k or (k + block_k - 1) // block_k >= stages - 1 >= 1",
         message = "k must have one step of block_k, or at least stages - 1 steps, the tiles that are prefetched"}
      ]} {
    // Matches the k loop: there are no other loops in the kernel at this point.
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    // The depth is the number of tiles in flight: one less than `stages`, since one stage is being read.
    %pipelined = transform.nvgpu.pipeline_shared_memory_copies failures(propagate) %k_loop
      {depth = 2 : i64, knobs = {depth = "stages - 1"}} : (!transform.any_op) -> !transform.any_op

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernel) : (!transform.any_op) -> ()
    transform.yield
  }
}
