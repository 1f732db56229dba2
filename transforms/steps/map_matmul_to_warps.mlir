// Tiles the thread-block tile of C into warp tiles of warp_m x warp_n.
//
// This is the second level of tiling. With `hoist_accumulators`, a warp keeps its tile of C in warp_m * warp_n / 32
// registers per thread (f32) for the whole k loop. It uses each fragment of A warp_n / 16 times and each fragment of B
// warp_m / 16 times: larger warp tiles reuse fragments more often, at the price of registers.
//
// With single-stage shared tiles a second barrier follows the matmul, because the copies of the next tile must not
// overwrite data that a slower warp still reads. `multi_buffer` removes it.
//
// Source: CC'22, algorithm 1 and section 3.4.
//
// Before:
//   linalg.matmul ins(%shared_a, %shared_b : memref<128x32xf16, ...>, memref<32x128xf16, ...>) outs(%c_tile : ...)
// After, with warp_m = warp_n = 64:
//   linalg.matmul ins(%a_rows, %b_columns : memref<64x32xf16, ...>, memref<32x64xf16, ...>) outs(%c_warp_tile : ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_matmul_to_warps(%module: !transform.any_op {transform.readonly},
      %warp_m: !transform.param<i64> {transform.readonly}, %warp_n: !transform.param<i64> {transform.readonly})
      attributes {requires = [
        {condition = "block_m % warp_m == 0", message = "block_m must be a multiple of warp_m"},
        {condition = "block_n % warp_n == 0", message = "block_n must be a multiple of warp_n"},
        {condition = "threads <= 1024", message = "a block must have at most 1024 threads"},
        {condition = "not has_private_tiles",
         message = "operands of linalg.matmul must be arguments or in shared memory (address space workgroup)"},
        {condition = "stage_in_shared_memory or not has_copied_tiles",
         message = "tiles that linalg.copy writes must be protected by barriers: stage_in_shared_memory must run"}
      ]} {
    // C = AB: the fill is tiled the same way. It needs no barrier, since a warp accesses its own tile of C only.
    %fill = transform.structured.match ops{["linalg.fill"]} in %module : (!transform.any_op) -> !transform.any_op
    %fill_tile, %fill_warps = transform.structured.tile_using_forall %fill tile_sizes [%warp_m, %warp_n]
      (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch_fill = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op

    // The barrier after the matmul protects the shared tiles; without shared tiles there is none (`knobs`).
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %launch_fill
      : (!transform.any_op) -> !transform.any_op
    %tile, %warps = transform.structured.tile_using_forall %matmul tile_sizes [%warp_m, %warp_n]
      (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    // A pair of products has one loop over warps, and one barrier.
    transform.tune.alternatives<"pair"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      %first, %second = transform.split_handle %warps : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      %both = transform.loop.fuse_sibling %first into %second
        : (!transform.any_op, !transform.any_op) -> !transform.any_op
    }
    %mapped = transform.gpu.map_nested_forall_to_threads %launch_fill block_dims = [128, 1, 1]
      sync_after_distribute = true
      {knobs = {block_dims = "[threads, 1, 1]", sync_after_distribute = "stage_in_shared_memory"}}
      : (!transform.any_op) -> !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
