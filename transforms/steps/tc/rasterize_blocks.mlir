// Renumbers the blocks, so that those that run together work on a compact part of C.
//
// Blocks start in the order of their numbers. In row order a wave of blocks shares a few rows of A and wants every
// column of B; numbered down columns of `raster` block rows it forms a rectangle, whose rows of A and columns of B fit
// the L2 cache together: more hits, fewer bytes from DRAM. It pays once the main loop is no longer what everything
// waits for. With raster = 1 the order stays that of the grid.
//
// Source: CC'22, section 8, names block remapping as future work. Upstream has no op that renumbers blocks.
//
// Before:
//   %j = gpu.block_id x
//   %i = gpu.block_id y
// After, with raster = 8 in a grid of 64 x 32 blocks:
//   %x = gpu.block_id x
//   %y = gpu.block_id y
//   %j = affine.apply (((%y * 64 + %x) mod 512) floordiv 8)
//   %i = affine.apply (((%y * 64 + %x) floordiv 512) * 8 + ((%y * 64 + %x) mod 512) mod 8)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @rasterize_blocks(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.rasterize_blocks"(%module) {group = 8 : i64, knobs = {group = "raster_group"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
