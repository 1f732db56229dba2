// Divides the k steps of the tiles of the last, partial wave evenly among all blocks (stream-K).
//
// 1376 tiles on 132 blocks are 10 waves and 56 tiles: in an eleventh wave 76 blocks would be idle. Split in two, the 56
// tiles are 112 halves, and the last wave takes half as long. In general the k steps of the remaining tiles form one
// sequence, and each block computes an equal, contiguous range of it, at least half a tile long.
//
// The splits of a tile are summed in C: the block with the first k steps stores, and the others add by TMA reduction,
// in the order of k. A semaphore for each tile in global memory serializes them, so that every launch gives the same
// result, whichever block finishes first.
//
// The step is faster where a product takes few waves and the last one is nearly empty (wave quantization). The
// accumulator must have C's type; otherwise every partial sum would be rounded.
//
// Left out: the last wave consists of whole tiles.
//
// Source: Osama, Merrill, Cecka, Garland, Owens, "Stream-K" (PPoPP 2023), in the data-parallel hybrid that applies it
// to the last wave only. Upstream has no op for it.
//
// Before:
//   scf.for %tile = %block to 1376 step 132 {
//     scf.for %k = 0 to 8192 step 64 { ... }
//     nvgpu.tma.async.store ...
// After:
//   scf.for %wave = 0 to 10 + %splits {
//     %tile, %first, %last = ...
//     scf.for %k = %first * 64 to %last * 64 step 64 { ... }
//     if %first != 0 { wait for the tile's semaphore }
//     if %first == 0 { nvgpu.tma.async.store ... } else { cp.reduce.async.bulk.tensor ... }
//     if the tile is split { release the tile's semaphore }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stream_k_tail(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["make_persistent"], left_out = {tile_scheduler = "data_parallel"}, requires = [
        {condition = "c_type == acc_type",
         message = "tile_scheduler = stream_k requires C to have the accumulator type (acc_type)"},
        {condition = "not has_consumer",
         message = "tile_scheduler = stream_k does not support elementwise ops: each slice of a tile would apply them"},
        {condition = "persistent_blocks > 0",
         message = "tile_scheduler = stream_k requires persistent_blocks above 0, blocks that compute several tiles"},
        {condition = "epilogue == 'tma'", message = "tile_scheduler = stream_k requires epilogue = tma"},
        {condition = "not is_pingpong", message = "tile_scheduler = stream_k requires schedule = cooperative"}
      ]} {
    "tc.stream_k_tail"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
