// Splits the k loop of a tile over `split_k` blocks, which sum their partial accumulators (split-K).
//
// With fewer tiles than the GPU has multiprocessors, some multiprocessors are idle, and smaller tiles cost more
// shared-memory and L2 traffic per product. With a long k, split-K keeps large tiles: each block accumulates a slice of
// the k steps and stores its partial accumulator to a workspace. After a synchronization each block reduces a share of
// the tile's elements over all splits, in order, and writes C. 16 x 4096 x 4096 in tiles of 64 x 64 has 64 tiles; with
// two splits it has 128 blocks.
//
// The knob split_k_workspace selects the workspace. `cluster`: the blocks of a tile form a cluster and read each
// other's shared memory, without the L2 cache. This limits split_k to 8, the number of resident clusters depends on how
// the multiprocessors are grouped in GPCs, and clusters cannot share tiles. `memory`: global memory, in practice the L2
// cache. Clusters can then share tiles (`multicast_tiles`), at the price of one write and one read of all partial
// accumulators. They are stored in register order, 16 bytes per thread and 512 bytes per warp; in row order each store
// would be 8 bytes. The workspace is meant for products with few tiles and is limited to 256 MiB.
//
// For a transposed C (`swap_operands`) the tile in shared memory is transposed too, so that threads read and write
// vectors of a row of C. Where blocks send sums to the block that reduces them (`push_partial_sums`), the tile is in
// register order instead: a thread stores its accumulators 16 bytes at a time, and reduces the elements at its own
// positions.
//
// A block reduces only after all splits are written. In a cluster, the cluster barrier ensures it. In global memory, a
// semaphore for each tile counts arrivals: each block adds one and waits for the full count. The blocks of a tile are
// neighbours in the grid and start together; with their clusters they are at most 64 blocks, so that they are
// co-resident.
//
// No split is empty, which an `llvm.intr.assume` states: a loop that may run zero times gets a guard, the accumulators
// become phis of two values, and ptxas may then serialize the `wgmma` instructions (C7515).
//
// Partial accumulators have the accumulator type and are rounded to C once. Upstream's
// `transform.structured.split_reduction` works on tensors and produces a product with one more dimension and a second
// kernel.
//
// Left out: one block computes a tile (`left_out`).
//
// Before:
//   gpu.launch blocks(...) in (4, 4, 1) {
//     scf.for %k = 0 to 4096 step 64 { ... linalg.matmul ins(%a, %b : ...) outs(%acc : ...) }
//     linalg.copy ins(%acc : ...) outs(%c_tile : ...)
// After, with split_k = 4:
//   gpu.launch clusters(...) in (4, 1, 1) blocks(...) in (16, 4, 1) {
//     %split = gpu.cluster_block_id x
//     scf.for %k = %split * 1024 to %split * 1024 + 1024 step 64 { ... }
//     linalg.copy ins(%acc : ...) outs(%split_k_workspace : memref<128x128xf32, strided<[136, 1]>, workgroup>)
//     nvvm.cluster.arrive; nvvm.cluster.wait
//     %tile0 = nvvm.mapa %split_k_workspace, 0; ...
//     scf.for %unit = %split * 256 + %thread to 4096 step 1024 { C = %tile0[...] + ... + %tile3[...] }
//     nvvm.cluster.arrive; nvvm.cluster.wait
// After, with split_k = 4 and split_k_workspace = memory:
//   memref.global @split_k_workspace : memref<16x4x4096x4xf32, global>      // tiles x splits x units of 4
//   gpu.launch blocks(...) in (16, 4, 1) {
//     %split = (gpu.block_id x) mod 4
//     scf.for %k = %split * 1024 to %split * 1024 + 1024 step 64 { ... }
//     linalg.transpose ins(%acc : ...) outs(%split_k_workspace[%tile, %split] : memref<8x2x8x8x4x2x2xf32, global>)
//     if %thread == 0 { add 1 to the tile's semaphore; wait until it is 4 }
//     scf.for %unit = %split * 256 + %thread to 4096 step 1024 { C = %split_k_workspace[%tile, 0, %unit] + ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @split_k(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {split_k = 1 : i64}, when = "split_k > 1", requires = [
        {condition = "products == 1", message = "split_k above 1 requires a single product, not a pair"},
        {condition = "epilogue == 'registers'",
         message = "split_k above 1 requires epilogue = registers"},
        {condition = "reductions == 0",
         message = "split_k above 1 does not support reductions of the product, which need complete sums"},
        {condition = "persistent_blocks == 0",
         message = "split_k above 1 requires persistent_blocks = 0"},
        {condition = "split_k_workspace == 'memory' or split_k <= 8",
         message = "split_k_workspace = cluster requires split_k to be at most 8"},
        {condition = "split_k_workspace == 'memory' or cluster_m * cluster_n == 1",
         message = "split_k above 1 with split_k_workspace = cluster requires cluster_m = cluster_n = 1"},
        {condition = "split_k * cluster_m * cluster_n <= 64",
         message = "split_k above 1 requires split_k * cluster_m * cluster_n to be at most 64"},
        {condition = "split_k_workspace == 'cluster' or block_n % 16 == 0",
         message = "split_k_workspace = memory requires block_n to be a multiple of 16"},
        {condition = "split_k_workspace == 'cluster' or global_workspace_bytes <= 256 * 1024 * 1024",
         message = "split_k_workspace = memory requires a workspace of at most 256 MiB (global_workspace_bytes)"},
        {condition = "not is_pingpong",
         message = "split_k above 1 requires schedule = cooperative"},
        {condition = "(k_steps + split_k - 1) // split_k * (split_k - 1) < k_steps",
         message = "each of the split_k splits must have at least one of the k_steps iterations of the k loop"},
        {condition = "n % 4 == 0 or c_layout == 'column'",
         message = "split_k above 1 requires n to be a multiple of 4"},
        {condition = "m > 1 or c_layout == 'row'",
         message = "split_k above 1 with swapped operands requires m, then the columns of C, to be above 1"}
      ]} {
    "tc.split_k"(%module) {splits = 1 : i64, threads = 256 : i64, workspace = "cluster",
      knobs = {splits = "split_k", threads = "consumers * 128",
               workspace = "'registers' if sends_sums else split_k_workspace"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
