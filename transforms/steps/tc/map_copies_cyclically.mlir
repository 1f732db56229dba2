// Deals the copies out to the threads row by row: thread t takes rows t / c, t / c + r, t / c + 2 r and so on.
//
// As `map_copies_to_threads`, with one difference: the rows of a thread do not follow each other but lie one pass of
// the whole block apart (r rows, c threads a row). A row's place in its swizzle pattern, its number modulo eight, is
// then the same for all rows of a thread: one address in a register, and the rest are constants in the instructions.
// That is for `convert_to_cp_async` and `interleave_copies`, which issue the copies of a thread one by one.
// And the rows that a warp writes at a time follow each other: where they are shorter than the 128 bytes of all banks,
// they fill different ones, which rows of threads that each take several in a row do not.
//
// Left out, `map_copies_to_threads` takes its place.
//
// A run is 16 bytes, `run` elements; a row of a stored tile is `a_width` or `b_width` elements long, whatever the
// operand's layout.
//
// The passes are unrolled before threads are mapped. Upstream can put a barrier behind every mapped loop, or behind
// none; one is needed behind the last pass, in front of the matmul, hence `tc.insert_barrier`.
//
// Before:
//   linalg.copy {operand_a} ins(%a_tile : memref<128x32xf16, ...>) outs(%shared_a : ...)
// After, with 128 threads:
//   linalg.copy {operand_a} ins(%row_t : memref<1x8xf16, ...>) outs(...)
//   linalg.copy {operand_a} ins(%row_t_plus_32 : memref<1x8xf16, ...>) outs(...)
//   ... two more passes, then B ...
//   gpu.barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence @map_copies_cyclically(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
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
    %a_pass, %a_passes = transform.structured.tile_using_for %a tile_sizes [32, 0]
      {knobs = {static_sizes = "[threads * run / a_width, 0]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %a_passes {factor = 4 : i64, knobs = {factor = "block_m * block_k / (threads * run)"}}
      : !transform.any_op
    %a_rows = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_slice, %a_threads = transform.structured.tile_using_forall %a_rows num_threads [32, 4]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * run / a_width, a_width / run]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)

    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_pass, %b_passes = transform.structured.tile_using_for %b tile_sizes [8, 0]
      {knobs = {static_sizes = "[threads * run / b_width, 0]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %b_passes {factor = 4 : i64, knobs = {factor = "block_k * block_n / (threads * run)"}}
      : !transform.any_op
    %b_rows = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_slice, %b_threads = transform.structured.tile_using_forall %b_rows num_threads [8, 16]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[threads * run / b_width, b_width / run]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)

    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    "tc.insert_barrier"(%matmul) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
