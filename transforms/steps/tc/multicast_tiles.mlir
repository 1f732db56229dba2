// Loads the tiles that blocks of a cluster share by TMA multicast: one load writes the shared memory of several blocks.
//
// The blocks in a column of the cluster read the same tile of B, and the blocks in a row the same tile of A. Each block
// loads a slice of the tile and multicasts it to all of them. With two blocks, the L2 traffic of the shared operand
// halves, which matters for large products: they are limited by L2 bandwidth and by the power that it takes.
//
// A slice has whole boxes, or rows of a box. TMA swizzles by the address in shared memory, so that a slice may begin at
// any multiple of 128 bytes: four blocks load a tile of 136 rows in slices of 34 rows.
//
// A block may overwrite a stage only after every block that receives the data has read it, so that consumer warpgroups
// arrive at the `empty` mbarriers of all of them. The remote arrival has no release semantics at cluster scope: a
// release would wait for all outstanding memory operations of the thread in every k step, which costs far more than
// multicast gains.
//
// Left out: each block loads all of its tiles itself.
//
// Before:
//   nvgpu.tma.async.load %B_map[%j, %k], %full[%stage] to %tile_b
//   nvgpu.mbarrier.arrive %empty[%stage]
// After, with cluster_m = 2:
//   nvgpu.tma.async.load %B_map[%j + %offset, %k], %full[%stage] to %slice_of_b multicast_mask = %blocks_of_column
//   nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64 _, [...];" (%empty_of_peer)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @multicast_tiles(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["form_clusters"], requires = [
        {condition = "a_boxes % cluster_n == 0 or a_rows * a_row_bytes // a_boxes % (128 * cluster_n) == 0",
         message = "cluster_n must divide the tile of A into TMA boxes (a_boxes) or slices of a multiple of 128 bytes"},
        {condition = "b_boxes % cluster_m == 0 or b_rows * b_row_bytes // b_boxes % (128 * cluster_m) == 0",
         message = "cluster_m must divide the tile of B into TMA boxes (b_boxes) or slices of a multiple of 128 bytes"}
      ]} {
    "tc.multicast_tiles"(%module) {rows = 2 : i64, columns = 1 : i64,
      knobs = {rows = "cluster_m", columns = "cluster_n"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
