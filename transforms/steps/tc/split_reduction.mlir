// Divides the reduction of a tile among the blocks of a cluster (split-K), for products with few tiles.
//
// A product with fewer tiles than the card has multiprocessors leaves the others idle, and the fewer and smaller the
// tiles are made, the more of shared memory and of the L2 cache each product costs. With a long k the tiles can stay
// large: each block of a cluster sums a part of the steps, writes its sums to a workspace, and behind the cluster's
// barrier takes a share of the tile's rows, adds up the parts, in order, and writes C. 512 x 512 x 16384 in tiles of
// 128 x 128 is 16 tiles; in eight parts it is 128 blocks.
//
// Partial sums are all of the accumulators' type, and rounded to C once. Upstream's
// `transform.structured.split_reduction` splits on tensors, into a product with one dimension more and a second kernel.
//
// Before:
//   gpu.launch blocks(...) in (4, 4, 1) {
//     scf.for %k = 0 to 16384 step 64 { ... linalg.matmul ins(%a, %b : ...) outs(%sums : ...) }
//     linalg.copy ins(%sums : ...) outs(%c_tile : ...)
// After, with split_k = 8:
//   gpu.launch clusters(...) in (8, 1, 1) blocks(...) in (32, 4, 1) {
//     %part = gpu.cluster_block_id x
//     scf.for %k = %part * 2048 to %part * 2048 + 2048 step 64 { ... }
//     linalg.copy ins(%sums : ...) outs(%partial_sums[%tile, %part] : ...)
//     nvvm.cluster.arrive; nvvm.cluster.wait
//     scf.for %unit = %thread to 512 step 256 { C = %partial_sums[%tile, 0] + ... + %partial_sums[%tile, 7] }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @split_reduction(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {split_k = 1 : i64},
        requires = ["split_k == 1 or epilogue == 'registers'", "split_k == 1 or blocks == 0",
          "split_k == 1 or cluster_m * cluster_n == 1", "split_k == 1 or not is_alternating",
          "split_k == 1 or (k_steps + split_k - 1) // split_k * (split_k - 1) < k_steps", "split_k == 1 or n % 4 == 0",
          "split_k == 1 or (m + block_m) * (n + block_n) * split_k * 4 <= 268435456"]} {
    "tc.split_reduction"(%module) {parts = 1 : i64, threads = 256 : i64,
      knobs = {parts = "split_k", threads = "consumers * 128"}} : (!transform.any_op) -> ()

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
