// Groups neighbouring blocks into thread-block clusters of cluster_m x cluster_n.
//
// The blocks of a cluster run concurrently on one GPC and can access each other's shared memory. The blocks in a row of
// the cluster read the same tiles of A, and the blocks in a column read the same tiles of B. This step only renumbers
// blocks; `multicast_tiles` loads the shared tiles once. A grid that is not a multiple of the cluster is rounded up if
// edge tiles may extend beyond C, and refused otherwise.
//
// Left out: there are no clusters (`left_out`).
//
// Source: named as future work in Ozen, "Hopper GEMM in MLIR". Upstream has no op that regroups a grid.
//
// Before:
//   gpu.launch blocks(...) in (32, 64, 1) {
//     %j = gpu.block_id x
//     %i = gpu.block_id y
// After, with cluster_m = 2, cluster_n = 1:
//   gpu.launch clusters(...) in (2, 1, 1) blocks(...) in (64, 32, 1) {
//     %rank = gpu.cluster_block_id x
//     %j = gpu.cluster_id x
//     %i = %rank + (gpu.cluster_id y) * 2

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @form_clusters(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {cluster_m = 1 : i64, cluster_n = 1 : i64}, requires = [
        {condition = "cluster_m * cluster_n <= 8",
         message = "a cluster must have at most 8 blocks (cluster_m * cluster_n), the portable maximum"},
        {condition = "m > block_m and m % block_m != 0 or (m + block_m - 1) // block_m % cluster_m == 0",
         message = "the number of tiles along m (m over block_m) must be a multiple of cluster_m"},
        {condition = "n > block_n and n % block_n != 0 or (n + block_n - 1) // block_n % cluster_n == 0",
         message = "the number of tiles along n (n over block_n) must be a multiple of cluster_n"}
      ]} {
    "tc.form_clusters"(%module) {rows = 2 : i64, columns = 1 : i64, knobs = {rows = "cluster_m", columns = "cluster_n"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
