// Starts as many blocks as run at once, each of which computes tile after tile.
//
// A block for each tile begins with the initialisation of barriers and the fetch of descriptors, and ends with nothing
// to do while its sums are written. A block that stays does the first once, and, its roles divided, already loads the
// next tile while it stores this one. 128 blocks can do better than the 132 that an H200 has room for: where both need
// as many waves, fewer tiles are in flight, and more of what they read is in the L2 cache.
//
// Upstream has no op that puts the body of a launch into a loop over its grid.
//
// Before:
//   gpu.launch blocks(...) in (32, 64, 1) {
//     %j = gpu.block_id x
//     %i = gpu.block_id y
// After, with blocks = 128:
//   gpu.launch blocks(...) in (128, 1, 1) {
//     %block = gpu.block_id x
//     scf.for %tile = %block to 2048 step 128 {
//       %j = affine.apply (%tile mod 32)
//       %i = affine.apply (%tile floordiv 32)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @make_persistent(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {persistent_blocks = 0 : i64}} {
    "tc.make_persistent"(%module) {blocks = 128 : i64, knobs = {blocks = "persistent_blocks"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
