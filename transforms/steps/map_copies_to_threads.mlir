// Distributes the copies to shared memory over the threads of the block, with one barrier after both copies.
//
// A thread copies vectors of `run` elements, 16 bytes, which is the widest access of a thread. Consecutive threads copy
// consecutive vectors of a row, so that the accesses of a warp coalesce to whole 32-byte sectors. A row of the stored
// tile of A has `a_width` elements and takes a_width / run threads; a row of B takes b_width / run. If a tile has more
// vectors than the block has threads, a thread copies several consecutive rows. `map_copies_cyclically` assigns rows in
// another order.
//
// The barrier makes the writes of a thread visible to the other warps.
//
// Source: CC'22, sections 3.4 and 3.6.
//
// Before:
//   linalg.copy {operand_a} ins(%a_tile : memref<128x32xf16, ...>) outs(%shared_a : ...)
// After, with 128 threads:
//   %t = gpu.thread_id x
//   linalg.copy {operand_a} ins(%a_slice : memref<4x8xf16, ...>) outs(%shared_a_slice : ...)
//   linalg.copy {operand_b} ins(%b_slice : memref<4x8xf16, ...>) outs(%shared_b_slice : ...)
//   gpu.barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_copies_to_threads(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "block_m % warp_m == 0", message = "block_m must be a multiple of warp_m"},
        {condition = "block_n % warp_n == 0", message = "block_n must be a multiple of warp_n"},
        {condition = "threads * run % a_width == 0",
         message = "threads * run, the elements of a copy, must be whole rows of A's tile (a_width)"},
        {condition = "block_m * block_k % (threads * run) == 0",
         message = "block_m * block_k, the tile of A, must be a multiple of threads * run, the elements of a copy"},
        {condition = "threads * run % b_width == 0",
         message = "threads * run, the elements of a copy, must be whole rows of B's tile (b_width)"},
        {condition = "block_k * block_n % (threads * run) == 0",
         message = "block_k * block_n, the tile of B, must be a multiple of threads * run, the elements of a copy"}
      ]} {
    // A: a grid of (threads * run / a_width) x (a_width / run) threads; linear_dim_0 is the fastest, along a row.
    %a = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_slice, %a_threads = transform.structured.tile_using_forall %a num_threads [32, 4]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * run / a_width, a_width / run]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // No barrier between the copies: they write different tiles.
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch_a = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op

    // B likewise. One barrier after it covers both copies.
    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %launch_a
      : (!transform.any_op) -> !transform.any_op
    %b_slice, %b_threads = transform.structured.tile_using_forall %b num_threads [8, 16]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * run / b_width, b_width / run]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // The copies to both B of a pair of products have one loop over threads, and one barrier.
    transform.tune.alternatives<"pair"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      %first, %second = transform.split_handle %b_threads
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      %both = transform.loop.fuse_sibling %first into %second
        : (!transform.any_op, !transform.any_op) -> !transform.any_op
    }
    %launch_b = transform.gpu.map_nested_forall_to_threads %launch_a block_dims = [128, 1, 1]
      sync_after_distribute = true {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
