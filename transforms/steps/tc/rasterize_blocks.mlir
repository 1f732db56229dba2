// Rasterizes the grid in groups of `raster_group` block rows (thread-block swizzle) for locality in the L2 cache.
//
// Blocks are scheduled in the order of their index. In row-major order, a wave of blocks shares a few rows of A and
// reads every column of B. If blocks are numbered down the columns of a group of block rows instead, a wave forms a
// rectangle whose rows of A and columns of B fit in the L2 cache together. This gives more L2 hits and fewer bytes from
// DRAM, and is faster where memory traffic limits the main loop. With raster_group = 1 the order of the grid is
// unchanged.
//
// Left out: the order is row-major.
//
// Source: CC'22, section 8, names block remapping as future work. Upstream has no op that renumbers blocks.
//
// Before:
//   %j = gpu.block_id x
//   %i = gpu.block_id y
// After, with raster_group = 8 in a grid of 64 x 32 blocks:
//   %x = gpu.block_id x
//   %y = gpu.block_id y
//   %j = affine.apply (((%y * 64 + %x) mod 512) floordiv 8)
//   %i = affine.apply (((%y * 64 + %x) floordiv 512) * 8 + ((%y * 64 + %x) mod 512) mod 8)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @rasterize_blocks(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.rasterize_blocks"(%module) {group = 8 : i64, knobs = {group = "raster_group"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
