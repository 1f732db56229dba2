// Deals the copies into shared memory out to the threads of the block, and lets all wait for the last of them.
//
// A thread takes runs of `run` elements, 16 bytes: the widest access there is. Threads that follow each other take runs
// that follow each other in a row, so a warp reads whole sectors of 32 bytes. A row of A's tile as it is stored is
// `a_width` elements long and a_width / run threads wide, a row of B's b_width / run; with fewer threads than runs, a
// thread takes several rows that follow each other. `map_copies_cyclically` does it in another order.
//
// One barrier stands behind both copies: what a warp reads, other threads have written.
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
  transform.named_sequence @map_copies_to_threads(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "block_m % warp_m == 0", message = "block_m must be a multiple of warp_m"},
        {condition = "block_n % warp_n == 0", message = "block_n must be a multiple of warp_n"},
        {condition = "threads * run % a_width == 0",
         message = "the threads must copy whole rows of A's tile at a time (threads * run elements, rows of a_width)"},
        {condition = "block_m * block_k % (threads * run) == 0",
         message = "A's tile, block_m x block_k, must come out even in copies of threads * run elements"},
        {condition = "threads * run % b_width == 0",
         message = "the threads must copy whole rows of B's tile at a time (threads * run elements, rows of b_width)"},
        {condition = "block_k * block_n % (threads * run) == 0",
         message = "B's tile, block_k x block_n, must come out even in copies of threads * run elements"}
      ]} {
    %a = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_slice, %a_threads = transform.structured.tile_using_forall %a num_threads [32, 4]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * run / a_width, a_width / run]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch_a = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op

    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %launch_a
      : (!transform.any_op) -> !transform.any_op
    %b_slice, %b_threads = transform.structured.tile_using_forall %b num_threads [8, 16]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * run / b_width, b_width / run]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %launch_b = transform.gpu.map_nested_forall_to_threads %launch_a block_dims = [128, 1, 1]
      sync_after_distribute = true {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
