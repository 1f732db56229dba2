// Converts the copies of A and B to TMA loads and the product to `wgmma`, which reads both tiles from shared memory.
//
// The two conversions depend on each other. TMA swizzles the 16-byte units of the rows that it writes to shared memory,
// which avoids bank conflicts on writes and reads, and `wgmma` reads tiles in that layout directly from shared memory.
//
// `tc.load_by_tma` replaces the copies. One thread issues the TMA loads of a k step. The loads complete the transaction
// count of the `full` mbarrier of their stage; consumers arrive at its `empty` mbarrier when they have read the tiles.
// Shared memory has `stages` stages, filled and released in order. With one stage, a load waits for the product of the
// previous tile. With more, `multistage_loads` or `specialize_warps` issues loads ahead of the products. TMA fills
// elements beyond the edges of A and B with zeros.
//
// `tc.convert_to_warpgroup_mma` replaces the product. Each warpgroup computes a slice of the tile's rows and keeps its
// accumulator in registers through the k loop. The epilogue step converts the accumulator and writes C.
//
// Source: Ozen, "Hopper GEMM in MLIR": TMA, mbarriers and warpgroup-level products. Upstream's
// `transform.nvgpu.rewrite_copy_as_tma` supports neither swizzled nor multistage tiles, and there is no upstream
// counterpart for the product.
//
// Before:
//   scf.for %k {
//     linalg.copy ins(%a : ...) outs(%shared_a : memref<128x64xf16, #gpu.address_space<workgroup>>)
//     ... the same for B ...
//     linalg.matmul ins(%shared_a, %shared_b : ...) outs(%acc : ...)
// After, with stages = 4:
//   %A_map = nvgpu.tma.create.descriptor ...
//   gpu.launch ... {
//     %shared_a = memref.alloc() {operand_a} : memref<4x1x128x64xf16, #gpu.address_space<workgroup>>
//     scf.for %k iter_args(%stage, %phase, %acc) {
//       scf.if %leader {
//         nvgpu.mbarrier.try_wait.parity %empty[%stage], !%phase
//         nvgpu.mbarrier.arrive.expect_tx %full[%stage], 49152
//         nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %shared_a[%stage]
//         ... the same for B ...
//       }
//       nvgpu.mbarrier.try_wait.parity %full[%stage], %phase
//       %next = nvgpu.warpgroup.mma %a, %b, %acc
//       scf.if %first_of_warpgroup { nvgpu.mbarrier.arrive %empty[%stage] }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @convert_to_wgmma(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "m < 2147483648 and n < 2147483648 and k < 2147483648",
         message = "extents must be below 2147483648: TMA coordinates have 32 bits"},
        {condition = "a_type in ['f16', 'bf16', 'f32', 'f8E4M3FN', 'f8E5M2', 'i8']",
         message = "the element type of A must be f16, bf16, f32, f8E4M3FN, f8E5M2 or i8"},
        {condition = "a_type == b_type or a_type in ['f8E4M3FN', 'f8E5M2'] and b_type in ['f8E4M3FN', 'f8E5M2']",
         message = "A and B must have the same element type, or f8E4M3FN and f8E5M2"},
        {condition = "acc_type == ('i32' if a_type == 'i8' else 'f32') or [a_type, acc_type] == ['f16', 'f16']",
         message = "the accumulator type must be i32 for i8, f16 or f32 for f16, and f32 for other operands"},
        {condition = "a_type != 'i8' or block_n <= 32 or block_n % 16 == 0",
         message = "block_n must be a multiple of 8 up to 32, or of 16 above, for operands of i8"},
        {condition = "a_type != 'f32' or allow_tf32 or splits_f32",
         message = "f32 operands require allow_tf32 = true; wgmma and mma_sync have f32 accuracy without it"},
        {condition = "block_k * a_bits >= 256",
         message = "block_k must be at least 32 bytes of A, the k extent of one wgmma"},
        {condition = "(block_m + 63) // 64 % tile_warpgroups == 0",
         message = "the rows of a tile, in units of 64 (block_m rounded up), must be a multiple of tile_warpgroups"},
        {condition = "block_m == staged_m or a_layout == 'row'",
         message = "block_m must be a multiple of 64 if A's tile is M-major (a_layout = column)"},
        {condition = "block_m == staged_m or products == 1 and reductions == 0",
         message = "block_m must be a multiple of 64 for a pair of products, and for reductions of the product"},
        {condition = "(block_m + 63) // 64 * block_n * products * acc_bits / (tile_warpgroups * 64) < 255",
         message = "accumulators (block_m x block_n over tile_warpgroups) must use fewer than 255 registers per thread"}
      ]} {
    // The number of warpgroups that share a tile is the arrival count of the `empty` mbarriers.
    "tc.load_by_tma"(%module) {stages = 4 : i64, warpgroups = 2 : i64,
      knobs = {stages = "stages", warpgroups = "tile_warpgroups"}} : (!transform.any_op) -> ()
    // Reads the shared tiles with the swizzle that the loads write.
    "tc.convert_to_warpgroup_mma"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
