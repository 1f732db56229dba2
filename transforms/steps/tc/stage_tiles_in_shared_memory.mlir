// Writes a XeTile product at work-group level as copies to shared memory, and a matmul of the tiles there.
//
// A tile that a work-group loads has a place in its shared memory, from which all its warps read. The sums are added to
// C in memory; `hoist_accumulators` keeps them in registers. Prefetches are left out: stages of shared memory, which
// `cp.async` fills ahead, take their place. Offsets of blocks must be numbers of blocks times tiles, and the tiles must
// divide the matrices, since these copies have no bounds. A tile of C for which a block has too few registers is
// divided among blocks, block_m x block_n each.
//
// Source: the XeTile RFC, whose cooperative loads (appendix 2.4) do so in the program.
//
// Before:
//   scf.for ... iter_args(%acc = %zero, %ta = %a_tile, %tb = %b_tile) {
//     %va = xetile.load_tile %ta
//     %vb = xetile.load_tile %tb
//     %sum = xetile.tile_mma %va, %vb, %acc {wg_map = ...}
// After:
//   linalg.fill ins(%zero) outs(%c)
//   %sa = memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
//   scf.for ... {
//     linalg.copy {operand_a} ins(%a_part) outs(%sa)
//     linalg.copy {operand_b} ins(%b_part) outs(%sb)
//     linalg.matmul ins(%sa, %sb) outs(%c)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stage_tiles_in_shared_memory(%module: !transform.any_op {transform.readonly}) {
    // Sizes of matrices and grids become constants.
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    "tc.tiles_to_shared_memory"(%module) {
      block_m = 128 : i64, block_n = 128 : i64, block_k = 32 : i64, whole_tiles = 1 : i64,
      knobs = {block_m = "block_m", block_n = "block_n", block_k = "block_k", whole_tiles = "whole_tiles"}
    } : (!transform.any_op) -> ()
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
