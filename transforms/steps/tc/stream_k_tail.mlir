// Divides the tiles that are left after the last whole wave along k, so that all blocks have work (stream-K).
//
// 1376 tiles on 132 blocks are 10 waves and 56 tiles: an eleventh wave in which 76 blocks have nothing to do.
// Divided, the 56 tiles are 112 halves, and the wave is half as long. In general the steps of k of the tiles that are
// left stand in one row, and each block takes an equal part of it, of half a tile at least.
//
// The parts of a tile are summed in C: who has its beginning stores, the others add, in the order of k, by TMA. Whose
// turn it is, is counted in global memory. So the result does not depend on who is first, and the sums of a tile are
// the same from launch to launch.
//
// It pays where the last wave is nearly empty and a product takes few waves. It needs sums of C's own type: parts
// that are rounded would be rounded twice.
//
// Osama, Merrill, Cecka, Garland, Owens, "Stream-K" (PPoPP 2023), in the form that shares the last tiles only. Upstream
// has no op for it.
//
// Before:
//   scf.for %tile = %block to 1376 step 132 {
//     scf.for %k = 0 to 8192 step 64 { ... }
//     nvgpu.tma.async.store ...
// After:
//   scf.for %wave = 0 to 10 + %parts {
//     %tile, %first, %last = ...
//     scf.for %k = %first * 64 to %last * 64 step 64 { ... }
//     if %first != 0 { wait for the turn }
//     if %first == 0 { nvgpu.tma.async.store ... } else { cp.reduce.async.bulk.tensor ... }
//     if the tile is shared { hand the turn on }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @stream_k_tail(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["make_persistent"], left_out = {tile_scheduler = "data_parallel"}, requires = [
        {condition = "c_type == acc_type", message = "C must have the element type of the accumulators (acc_type)"},
        {condition = "persistent_blocks > 0", message = "persistent_blocks must be above 0, so that each block takes several tiles"},
        {condition = "epilogue == 'tma'", message = "epilogue must be tma"},
        {condition = "not is_pingpong", message = "schedule must be cooperative"}
      ]} {
    "tc.stream_k_tail"(%module) : (!transform.any_op) -> ()

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
