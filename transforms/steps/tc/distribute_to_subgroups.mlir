// Distributes tiles and vectors to subgroups: the program is at subgroup level afterwards.
//
// The registers of the subgroups of a work-group hold its vectors. The `wg_map` assigns each block to a subgroup; an
// index that is computed from the subgroup's id replaces it. A subgroup that owns several blocks of a tile gets a
// tile for each of them. `convert_layout`, and a `transpose` whose blocks other subgroups own, go through shared local
// memory between barriers; a vector that is too large for it is exchanged in parts.
//
// Source: the XeTile RFC, "Workgroup Level XeTile extension".
//
// Before, with sg_layout = [8, 4] and sg_data = [32, 64]:
//   %sum = xetile.tile_mma %a, %b, %acc {wg_map = ...} : ... -> vector<256x256xf32>
//   xetile.store_tile %sum, %tile : vector<256x256xf32>, !xetile.tile<vector<256x256xf32>, wg = ...>
// After:
//   %sg = gpu.subgroup_id
//   %tile = xetile.init_tile %C[%i + %sg floordiv 4 * 32, %j + %sg mod 4 * 64]
//   %sum = xetile.tile_mma %a, %b, %acc : ... -> vector<32x64xf32>
//   xetile.store_tile %sum, %tile : vector<32x64xf32>, !xetile.tile<vector<32x64xf32>>

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @distribute_to_subgroups(%module: !transform.any_op {transform.readonly}) {
    "tc.distribute_tiles"(%module) {slm_bytes = 65536 : i64} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
