// Writes C through shared memory: 128 bytes of each row at a time, which TMA stores while the next are written.
//
// A thread holds two neighbours in a row, so that stores from registers write 8 bytes here and there. Collected in
// shared memory they leave as whole rows, by one instruction, and the threads go on: the last boxes of a tile are on
// their way while the next tile's main loop runs. 16-bit sums go to shared memory by `stmatrix`, four 8 x 8 matrices an
// instruction. What lies beyond the edges of C is left out by TMA. For C = AB + C, TMA adds to C.
//
// Before:
//   nvgpu.warpgroup.mma.store %acc, %sums
//   linalg.copy ins(%sums : ...) outs(%c_tile : ...)
// After, for each box of 32 columns of f32:
//   scf.if %first_of_warpgroup { nvvm.cp.async.bulk.wait_group 1 {read} }
//   nvvm.barrier id = %warpgroup + 1 number_of_threads = 128
//   vector.store %pair, %box[%row, %swizzled_column] ...
//   nvvm.fence.proxy {async.shared}
//   nvvm.barrier id = %warpgroup + 1 number_of_threads = 128
//   scf.if %first_of_warpgroup {
//     nvgpu.tma.async.store %box to %c_map[%column, %row]
//     nvvm.cp.async.bulk.commit.group
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @tma_store_epilogue(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "block_n * c_bits % 256 == 0",
         message = "with epilogue = tma, rows of the tile of C must be a multiple of 32 bytes, block_n elements of C"}
      ]} {
    "tc.tma_store_epilogue"(%module) {buffers = 2 : i64, warpgroups = 2 : i64,
      knobs = {buffers = "epilogue_stages", warpgroups = "consumers"}} : (!transform.any_op) -> ()

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
