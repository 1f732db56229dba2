// Makes the kernel persistent: a fixed number of blocks, each of which loops over tiles of C.
//
// With one block per tile, every tile pays for the initialization of mbarriers and the fetch of descriptors, and no
// loads are in flight during its epilogue. A persistent block runs its prologue once, and a producer warpgroup loads
// the next tile during the epilogue. 128 blocks can be faster than the 132 that an H200 runs at once: if both need the
// same number of waves, fewer tiles are in flight, and the L2 hit rate is higher.
//
// Upstream has no op that puts the body of a launch into a loop over its grid.
//
// Left out: there is a block for each tile (`left_out`).
//
// Before:
//   gpu.launch blocks(...) in (32, 64, 1) {
//     %j = gpu.block_id x
//     %i = gpu.block_id y
// After, with persistent_blocks = 128:
//   gpu.launch blocks(...) in (128, 1, 1) {
//     %block = gpu.block_id x
//     scf.for %tile = %block to 2048 step 128 {
//       %j = affine.apply (%tile mod 32)
//       %i = affine.apply (%tile floordiv 32)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @make_persistent(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {persistent_blocks = 0 : i64}, requires = [
        {condition = "persistent_blocks == 0 or persistent_blocks >= cluster_m * cluster_n",
         message = "persistent_blocks must be 0, or at least the blocks of a cluster (cluster_m * cluster_n)"}
      ]} {
    "tc.make_persistent"(%module) {blocks = 128 : i64, knobs = {blocks = "persistent_blocks"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
