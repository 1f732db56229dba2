// Stores C through shared memory by TMA, overlapped with the next tile (epilogue).
//
// A thread holds two adjacent elements of a row, so that direct stores write 8 bytes (f32) at scattered addresses. This
// epilogue collects boxes of up to 128 bytes of each row in shared memory, and a single TMA store writes a box. The
// threads continue at once: `epilogue_stages` boxes of a warpgroup are in flight, and the last ones of a tile complete
// during the main loop of the next. 16-bit values are written to shared memory by `stmatrix`, four 8 x 8 matrices per
// instruction. TMA clips boxes at the edges of C; for C = AB + C it adds to C (TMA reduction).
//
// Rows of a transposed C (`swap_operands`) are columns of the tile, and the pair of a thread has elements of two rows
// of C, which direct stores would write one by one. The box is written transposed instead, 16-bit elements by
// `stmatrix.trans`. A box has up to 64 rows of C, as for a row-major C: a box with all columns of a wide tile would
// take the shared memory of one or two stages of the main loop.
//
// A matrix that the epilogue reads, such as that of a residual connection, is as large as C. It is copied by `cp.async`
// to the boxes of C during the main loop, after TMA has read the previous tile from them. The copies are spread evenly
// over the k steps, one box after the other: issued all at once, they would delay the loads of A and B for which the
// MMAs wait. A box holds the matrix as it holds C, so that `ldmatrix` reads what `stmatrix` then overwrites, at the
// same addresses, and with `.trans` for a transposed C. If a tile has more boxes than `epilogue_stages`, the remaining
// ones are loaded to registers (`hoist_operand_loads`).
//
// With `store_threads = 32`, each warp stores its 16 rows of a box independently: the barriers below become warp
// barriers, and a warp does not wait for the others of its warpgroup. An operand is still copied by the whole
// warpgroup.
//
// Reductions of rows or columns are folded in registers before the stores, as in `convert_to_mma_sync`.
//
// Before:
//   nvgpu.warpgroup.mma.store %acc, %buffer
//   linalg.copy ins(%buffer : ...) outs(%c_tile : ...)
// After, for each box of 32 columns of f32:
//   scf.if %first_of_warpgroup { nvvm.cp.async.bulk.wait_group 1 {read} }
//   nvvm.barrier id = %warpgroup + 1 number_of_threads = 128
//   vector.store %pair, %box[%row, %swizzled_column] ...
//   nvvm.fence.proxy {async.shared}
//   nvvm.barrier id = %warpgroup + 1 number_of_threads = 128
//   scf.if %first_of_warpgroup {
//     nvgpu.tma.async.store %box to %C_map[%column, %row]
//     nvvm.cp.async.bulk.commit.group
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @tma_store_epilogue(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "block_m == staged_m",
         message = "epilogue = tma requires block_m to be a multiple of 64, the rows of a wgmma"},
        {condition = "c_layout == 'column' or block_n * c_bits % 256 == 0",
         message = "epilogue = tma requires tile rows of C (block_n elements) that are a multiple of 32 bytes"},
        {condition = "(m if c_layout == 'column' else n) * c_bits % 128 == 0",
         message = "epilogue = tma requires rows of C (n elements) that are a multiple of 16 bytes"},
        {condition = "results == 1 or c_layout == 'column' or block_n * result_bits % 256 == 0",
         message = "epilogue = tma requires tile rows of each result that are a multiple of 32 bytes"},
        {condition = "results == 1 or (m if c_layout == 'column' else n) * result_bits % 128 == 0",
         message = "epilogue = tma requires rows of each result that are a multiple of 16 bytes"},
        {condition = "c_layout == 'row' or result_bits > 8",
         message = "epilogue = tma with swap_operands requires results of 16-bit elements or wider"},
        {condition = "store_threads == 128 or c_layout == 'row'",
         message = "store_threads = 32 requires a row-major C: each warp stores rows"}
      ]} {
    "tc.tma_store_epilogue"(%module) {stages = 2 : i64, warpgroups = 2 : i64, copies_operand = 1 : i64,
      group = 128 : i64,
      knobs = {stages = "epilogue_stages", warpgroups = "consumers", copies_operand = "copies_operand",
               group = "store_threads"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
