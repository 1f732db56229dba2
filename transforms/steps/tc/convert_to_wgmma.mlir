// Feeds the matrix unit from shared memory: tiles arrive by TMA, and warpgroups multiply them by `wgmma`.
//
// Two things that only go together. TMA, the copy engine, writes a tile into shared memory with the 16-byte units of
// its rows exchanged (swizzled), so that neither it nor what reads the tile meets bank conflicts; and `wgmma` is what
// reads tiles laid out like that, whole, without taking them through registers.
//
// `tc.load_by_tma` replaces the copies of A and B. One thread issues the loads of a step of k; they complete a barrier
// in shared memory (`full`) by the number of their bytes, and a second one (`empty`) says when the tiles have been
// read. There are `stages` places for tiles, a ring that is filled and emptied in order: with one, a load waits until
// the products before it are done; with more, loads may run ahead, for which other steps arrange. What lies beyond the
// edges of A and B, TMA fills with zeros.
//
// `tc.convert_to_warpgroup_mma` replaces the product: each of the warpgroups takes a share of the tile's rows, and
// keeps its sums in registers through the loop over k. Which numbers they become in C is left to the epilogue.
//
// Source: Ozen, "Hopper GEMM in MLIR": TMA, mbarriers and warpgroup-level products. Upstream's
// `transform.nvgpu.rewrite_copy_as_tma` knows neither swizzle nor rings, and has no counterpart for the product.
//
// Before:
//   scf.for %k {
//     linalg.copy ins(%a : ...) outs(%shared_a : memref<128x64xf16, #gpu.address_space<workgroup>>)
//     ... the same for B ...
//     linalg.matmul ins(%shared_a, %shared_b : ...) outs(%sums : ...)
// After, with stages = 4:
//   %a_map = nvgpu.tma.create.descriptor ...
//   gpu.launch ... {
//     %ring_a = memref.alloc() {operand_a} : memref<4x1x128x64xf16, #gpu.address_space<workgroup>>
//     scf.for %k iter_args(%slot, %parity, %acc) {
//       scf.if %leader {
//         nvgpu.mbarrier.try_wait.parity %empty[%slot], !%parity
//         nvgpu.mbarrier.arrive.expect_tx %full[%slot], 49152
//         nvgpu.tma.async.load %a_map[%k, %i], %full[%slot] to %ring_a[%slot]
//         ... the same for B ...
//       }
//       nvgpu.mbarrier.try_wait.parity %full[%slot], %parity
//       %next = nvgpu.warpgroup.mma %a, %b, %acc
//       scf.if %first_of_warpgroup { nvgpu.mbarrier.arrive %empty[%slot] }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @convert_to_wgmma(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "a_type in ['f16', 'bf16', 'f32', 'f8E4M3FN', 'f8E5M2']",
         message = "A must be of f16, bf16, f32, f8E4M3FN or f8E5M2"},
        {condition = "block_m % (64 * tile_warpgroups) == 0",
         message = "block_m must be a multiple of 64 rows for each warpgroup of a tile (tile_warpgroups)"},
        {condition = "block_m * block_n * acc_bits / (tile_warpgroups * 128 * 32) < 255",
         message = "accumulators, block_m x block_n over tile_warpgroups, must take fewer than 255 registers a thread"}
      ]} {
    "tc.load_by_tma"(%module) {stages = 4 : i64, warpgroups = 2 : i64,
      knobs = {stages = "stages", warpgroups = "tile_warpgroups"}} : (!transform.any_op) -> ()
    "tc.convert_to_warpgroup_mma"(%module) : (!transform.any_op) -> ()

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
