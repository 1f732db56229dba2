// Distributes the copies over threads cyclically: thread t copies rows t / c, t / c + r, t / c + 2 r and so on.
//
// One pass of the block copies r rows, with c threads per row. The rows of a thread are r rows apart, where
// `map_copies_to_threads` assigns consecutive rows. All rows of a thread then have the same swizzle phase (the row
// number modulo eight): one address register suffices, and the other addresses are immediate offsets. This helps
// `convert_to_cp_async` and `interleave_copies`, which issue the copies of a thread one by one. The warp writes
// consecutive rows at the same time: rows shorter than 128 bytes, the width of all banks, fall into different banks. If
// each thread wrote several consecutive rows, they would not.
//
// With fewer than eight rows per pass, each vector of a thread would need a separate address register. Passes over
// swizzled tiles then cover eight rows and a part of the columns.
//
// A thread copies vectors of `run` elements, 16 bytes. A row of a stored tile has `a_width` or `b_width` elements in
// either layout of the operand, and a pass `a_pass` or `b_pass` rows.
//
// The passes are unrolled before threads are mapped. Upstream inserts a barrier after every mapped loop or after none;
// `tc.insert_barrier` adds the one that the copies need, after the last pass and before the matmul.
//
// Left out: `map_copies_to_threads` distributes the copies.
//
// Before:
//   linalg.copy {operand_a} ins(%a_tile : memref<128x32xf16, ...>) outs(%shared_a : ...)
// After, with 128 threads:
//   linalg.copy {operand_a} ins(%row_t : memref<1x8xf16, ...>) outs(...)
//   linalg.copy {operand_a} ins(%row_t_plus_32 : memref<1x8xf16, ...>) outs(...)
//   ... two more passes, then B ...
//   gpu.barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_copies_cyclically(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
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
    // A: one pass of the block covers a_pass rows of a part of the columns, which may be all; the passes are unrolled.
    %a = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_pass, %a_passes = transform.structured.tile_using_for %a tile_sizes [32, 0]
      {knobs = {static_sizes = "[a_pass, 0]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %a_part, %a_parts = transform.structured.tile_using_for %a_pass tile_sizes [0, 32]
      {knobs = {static_sizes = "[0, threads * run / a_pass]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %a_parts
      {factor = 1 : i64, knobs = {factor = "a_pass * a_width / (threads * run)"}} : !transform.any_op
    transform.loop.unroll %a_passes
      {factor = 4 : i64, knobs = {factor = "block_m * block_k / (a_pass * a_width)"}} : !transform.any_op
    // Within a pass every thread copies one vector.
    %a_rows = transform.structured.match ops{["linalg.copy"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_slice, %a_threads = transform.structured.tile_using_forall %a_rows num_threads [32, 4]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[a_pass, threads / a_pass]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)

    // B likewise.
    %b = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_pass, %b_passes = transform.structured.tile_using_for %b tile_sizes [8, 0]
      {knobs = {static_sizes = "[b_pass, 0]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %b_part, %b_parts = transform.structured.tile_using_for %b_pass tile_sizes [0, 32]
      {knobs = {static_sizes = "[0, threads * run / b_pass]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %b_parts
      {factor = 1 : i64, knobs = {factor = "b_pass * b_width / (threads * run)"}} : !transform.any_op
    transform.loop.unroll %b_passes
      {factor = 4 : i64, knobs = {factor = "block_k * block_n / (b_pass * b_width)"}} : !transform.any_op
    %b_rows = transform.structured.match ops{["linalg.copy"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_slice, %b_threads = transform.structured.tile_using_forall %b_rows num_threads [8, 16]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      {knobs = {static_num_threads = "[b_pass, threads / b_pass]"}}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)

    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op
    // One barrier after the last pass of both operands.
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    "tc.insert_barrier"(%matmul) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
