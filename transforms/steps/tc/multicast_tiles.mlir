// Loads a tile that several blocks of a cluster share once, and writes it into the shared memory of each.
//
// The blocks in a column of the cluster read the same tile of B, those in a row the same tile of A. Each loads its part
// and TMA writes it to all of them: from the L2 cache, which is what a large product waits for and spends its power on,
// comes half as much of the shared operand with two blocks.
//
// A slot may be loaded over when all blocks that it is written to have read theirs: threads of a warpgroup arrive at
// the barriers of all of them. Such an arrival releases nothing at cluster scope: that would wait for all memory of the
// thread, every step, and costs far more than multicast gains.
//
// Before:
//   nvgpu.tma.async.load %b_map[%j, %k], %full[%slot] to %tile_b
//   nvgpu.mbarrier.arrive %empty[%slot]
// After, with cluster_m = 2:
//   nvgpu.tma.async.load %b_map[%j + %part, %k], %full[%slot] to %part_of_tile_b multicast_mask = %blocks_of_column
//   nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64 _, [...];" (%empty_of_peer)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @multicast_tiles(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["form_clusters"], requires = [
        {condition = "a_boxes % cluster_n == 0 or (block_m if a_layout == 'row' else block_k) % (8 * cluster_n) == 0",
         message = "the tile of A must divide into cluster_n parts, of whole boxes (a_boxes) or of 8 rows or more each"},
        {condition = "b_boxes % cluster_m == 0 or (block_n if b_layout == 'column' else block_k) % (8 * cluster_m) == 0",
         message = "the tile of B must divide into cluster_m parts, of whole boxes (b_boxes) or of 8 rows or more each"}
      ]} {
    "tc.multicast_tiles"(%module) {rows = 2 : i64, columns = 1 : i64,
      knobs = {rows = "cluster_m", columns = "cluster_n"}} : (!transform.any_op) -> ()

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
