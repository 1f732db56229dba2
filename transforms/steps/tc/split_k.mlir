// Divides the reduction of a tile among several blocks (split-K), for products with few tiles.
//
// A product with fewer tiles than the card has multiprocessors leaves the others idle, and the fewer and smaller the
// tiles are made, the more of shared memory and of the L2 cache each product costs. With a long k the tiles can stay
// large: each block sums a part of the steps and leaves its sums where the others find them; when all have, each takes
// a share of the tile's elements, adds up the parts of all blocks, in order, and writes C. 16 x 4096 x 4096 in tiles of
// 64 x 64 is 64 tiles; in two parts it is 128 blocks.
//
// There are two places for partial sums (the knob split_k_workspace). Blocks of a cluster reach each other's shared memory
// without a way through the L2 cache. That limits the parts to 8, how many clusters fit on a card at once depends on
// how many of its multiprocessors lie together, and there is no other use for clusters then. In global memory, which is
// to say in L2, parts are free of all that: clusters can share tiles (`multicast_tiles`), at the price of a write and a
// read of all parts. They go to this workspace as threads hold them, 16 bytes a thread and 512 a warp: to rows they
// would be written 8 bytes at a time. It is for few tiles, and may have 256 MiB.
//
// Who reads must know that all have written. In a cluster that is the cluster's barrier. In memory it is an arrival
// counter for each tile, to which each of its blocks adds one, and for which it then waits. The blocks are neighbours
// in the grid, so that they start together, and at most 64 with those of their clusters, so that they fit on the card
// together.
//
// No part is empty, and LLVM is told: a loop that might not run at all gets a test in front, and its accumulators two
// origins, for which ptxas may put the products in sequence (C7515).
//
// Partial sums are all of the accumulators' type, and rounded to C once. Upstream's
// `transform.structured.split_k` splits on tensors, into a product with one dimension more and a second kernel.
//
// Before:
//   gpu.launch blocks(...) in (4, 4, 1) {
//     scf.for %k = 0 to 4096 step 64 { ... linalg.matmul ins(%a, %b : ...) outs(%sums : ...) }
//     linalg.copy ins(%sums : ...) outs(%c_tile : ...)
// After, with split_k = 4:
//   gpu.launch clusters(...) in (4, 1, 1) blocks(...) in (16, 4, 1) {
//     %part = gpu.cluster_block_id x
//     scf.for %k = %part * 1024 to %part * 1024 + 1024 step 64 { ... }
//     linalg.copy ins(%sums : ...) outs(%partial_sums : memref<128x128xf32, strided<[136, 1]>, workgroup>)
//     nvvm.cluster.arrive; nvvm.cluster.wait
//     %tile0 = nvvm.mapa %partial_sums, 0; ...
//     scf.for %unit = %part * 256 + %thread to 4096 step 1024 { C = %tile0[...] + ... + %tile3[...] }
//     nvvm.cluster.arrive; nvvm.cluster.wait
// After, with split_k = 4 and split_k_workspace = memory:
//   memref.global @partial_sums : memref<16x4x4096x4xf32, global>      // tiles x parts x units of 4
//   gpu.launch blocks(...) in (16, 4, 1) {
//     %part = (gpu.block_id x) mod 4
//     scf.for %k = %part * 1024 to %part * 1024 + 1024 step 64 { ... }
//     linalg.transpose ins(%sums : ...) outs(%partial_sums[%tile, %part] : memref<8x2x8x8x4x2x2xf32, global>)
//     if %thread == 0 { add one to the tile's counter; wait until all have }
//     scf.for %unit = %part * 256 + %thread to 4096 step 1024 { C = %partial_sums[%tile, 0, %unit] + ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @split_k(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {split_k = 1 : i64}, requires = [
        {condition = "split_k == 1 or epilogue == 'registers'",
         message = "with split_k above 1, epilogue must be registers"},
        {condition = "split_k == 1 or persistent_blocks == 0",
         message = "with split_k above 1, persistent_blocks must be 0"},
        {condition = "split_k == 1 or split_k_workspace == 'memory' or split_k <= 8",
         message = "with split_k_workspace = cluster, split_k must be at most 8"},
        {condition = "split_k == 1 or split_k_workspace == 'memory' or cluster_m * cluster_n == 1",
         message = "with split_k above 1 and split_k_workspace = cluster, cluster_m and cluster_n must be 1"},
        {condition = "split_k == 1 or split_k * cluster_m * cluster_n <= 64",
         message = "with split_k above 1, split_k * cluster_m * cluster_n must be at most 64"},
        {condition = "split_k == 1 or split_k_workspace == 'cluster' or block_n % 16 == 0",
         message = "with split_k_workspace = memory, block_n must be a multiple of 16"},
        {condition = "split_k == 1 or split_k_workspace == 'cluster' or global_workspace_bytes <= 256 * 1024 * 1024",
         message = "with split_k_workspace = memory, the workspace must take at most 256 MiB (global_workspace_bytes)"},
        {condition = "split_k == 1 or not is_pingpong",
         message = "with split_k above 1, schedule must be cooperative"},
        {condition = "split_k == 1 or (k_steps + split_k - 1) // split_k * (split_k - 1) < k_steps",
         message = "each of the split_k parts of the reduction must have a step of the k loop (k_steps)"},
        {condition = "split_k == 1 or n % 4 == 0", message = "with split_k above 1, n must be a multiple of 4"}
      ]} {
    "tc.split_k"(%module) {parts = 1 : i64, threads = 256 : i64, within = "cluster",
      knobs = {parts = "split_k", threads = "consumers * 128", within = "split_k_workspace"}} : (!transform.any_op) -> ()

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
