// Converts a XeTile product at work-group level to copies to shared memory and a matmul of the copied tiles.
//
// A tile that a work-group loads is staged in shared memory, from which all its warps read. The step drops prefetches:
// shared-memory stages, which `cp.async` or TMA fills ahead, replace them. A tile of C that needs more registers than a
// block has is divided among blocks of block_m x block_n. An operand that is stored as its transpose is copied as it is
// stored.
//
// With `whole_tiles` (`cp.async`) the sums are added to C in memory, which `hoist_accumulators` keeps in registers.
// These copies check no bounds, so that the tiles must divide the matrices. Without it (TMA) the sums are in a tile of
// their own, which is copied to C, and tiles that reach beyond a matrix are padded with zeros. Elementwise ops behind
// the product become a `linalg.generic` of the tile with the sums.
//
// Source: the XeTile RFC, whose cooperative loads (appendix 2.4) stage tiles in the program itself.
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
