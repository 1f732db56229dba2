// Converts the matmul to a XeTile program at work-group level.
//
// A work-group computes a tile of C of block_m x block_n elements, and moves a tile of A and a tile of B along k. A
// tile is a block of a matrix and knows the matrix's bounds: loads beyond them give zeros and stores beyond them write
// nothing, so that sizes which the tiles do not divide need no code for edges. In a pipeline with `whole_tiles` a later
// step copies tiles without such bounds, and they must divide m, n and k. The `wg_map` of a tile assigns sg_m x sg_n
// elements of C to a subgroup. A column-major operand is indexed like a row-major one, with order = [0, 1].
//
// Source: the XeTile RFC, appendix 2.1 without its prefetches.
//
// Before:
//   %product = linalg.matmul ins(%a, %b : ...) outs(%c : tensor<512x512xf32>)
//   bufferization.materialize_in_destination %product in restrict writable %C
// After, with tiles of 256 x 256 x 32:
//   scf.forall (%i, %j) in (2, 2) {
//     %a_tile = xetile.init_tile %A[%i * 256, 0] : !xetile.tile<vector<256x32xf16>, wg = ...>
//     ...
//     %sum, ... = scf.for %k = 0 to 512 step 32 iter_args(%acc, %a_here = %a_tile, %b_here = %b_tile) {
//       %va = xetile.load_tile %a_here
//       %vb = xetile.load_tile %b_here
//       %vc = xetile.tile_mma %va, %vb, %acc {wg_map = ...}
//       %a_next = xetile.update_tile_offset %a_here, 0, 32
//       ...
//     }
//     xetile.store_tile %sum, %c_tile
//   } {mapping = [#gpu.block<y>, #gpu.block<x>]}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @convert_to_tiles(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "not has_producer or prepares",
         message = "A and B must be function arguments: producers are not supported"},
        {condition = "windows == 0 or takes_windows",
         message = "A, B and C must be whole buffers, not parts of buffers"},
        {condition = "not has_consumer",
         message = "C must have the accumulator type, and the matmul must have no elementwise consumers"},
        {condition = "not batched", message = "the payload must be a single matmul: a batch is not supported"},
        {condition = "m % block_m == 0 or not whole_tiles", message = "m must be a multiple of block_m"},
        {condition = "n % block_n == 0 or not whole_tiles", message = "n must be a multiple of block_n"},
        {condition = "k % block_k == 0 or not whole_tiles", message = "k must be a multiple of block_k"},
        {condition = "block_m % sg_m == 0 and block_n % sg_n == 0",
         message = "the tile of a work-group must be a multiple of the tiles of its subgroups"},
        {condition = "subgroups in [1, 2, 4, 8, 16, 32, 64]",
         message = "block_m / sg_m * (block_n / sg_n), the subgroups of a work-group, must be a power of 2 up to 64"}
      ]} {
    "tc.matmul_to_tiles"(%module) {
      block_m = 256 : i64, block_n = 256 : i64, block_k = 32 : i64, sg_m = 32 : i64, sg_n = 64 : i64,
      knobs = {block_m = "block_m", block_n = "block_n", block_k = "block_k", sg_m = "sg_m", sg_n = "sg_n"}
    } : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
