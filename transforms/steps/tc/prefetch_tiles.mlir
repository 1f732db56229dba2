// Prefetches the tiles of A and B into the cache, `distance` k steps before they are loaded.
//
// A load of a tile waits for memory; a prefetch does not, and occupies no registers. The prefetched tile has a `wg_map`
// of its own, by which each subgroup prefetches another part, whereas the loads of subgroups in a row or a column
// overlap.
//
// Left out: each load waits for memory.
//
// Source: the XeTile RFC, appendix 2.1.
//
// Before:
//   scf.for ... iter_args(%acc, %a_here = %a_tile, %b_here = %b_tile) { load; load; products }
// After:
//   %a_ahead = xetile.update_tile_offset %a_prefetch, 0, 96
//   scf.for ... iter_args(%acc, %a_here = %a_tile, %b_here = %b_tile, %pa = %a_ahead, %pb = %b_ahead) {
//     load; load; products
//     xetile.prefetch_tile %pa {locality = 3}
//     %pa_next = xetile.update_tile_offset %pa, 0, 32
//     ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prefetch_tiles(%module: !transform.any_op {transform.readonly}) attributes {optimization} {
    "tc.prefetch_tiles"(%module) {distance = 3 : i64, line_bytes = 64 : i64, knobs = {distance = "distance"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
