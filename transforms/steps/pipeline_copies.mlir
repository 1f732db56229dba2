// Issues asynchronous copies `buffers` - 1 tiles ahead.
//
// While iteration i computes, the tiles of the following iterations are on their way, each in its own group; an
// iteration waits until its own group is done, and leaves the later ones in flight. Behind the last tile the copies are
// predicated: they copy nothing. One barrier an iteration is enough, since the place that is overwritten was read an
// iteration ago.
//
// Before:
//   scf.for %k = 0 to 512 step 32 {
//     copy tile k; create_group; wait; gpu.barrier; compute tile k
//   }
// After, with buffers = 3:
//   copy tile 0; create_group; copy tile 1; create_group
//   scf.for %k = 0 to 512 step 32 {
//     wait for tile k, 1 group in flight; gpu.barrier; compute tile k; copy tile k + 64; create_group
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pipeline_copies(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["multi_buffer"], requires = [
        {condition = "stages >= 2", message = "stages must be at least 2"},
        {condition = "k == block_k or k / block_k >= stages - 1 >= 1",
         message = "k must be block_k, or at least block_k times the tiles that are loaded ahead (stages - 1)"}
      ]} {
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    %pipelined = transform.nvgpu.pipeline_shared_memory_copies failures(propagate) %k_loop
      {depth = 2 : i64, knobs = {depth = "stages - 1"}} : (!transform.any_op) -> !transform.any_op

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %kernel {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %kernel : !transform.any_op
    transform.yield
  }
}
