// Copies the tiles of the next iteration while those of this one are multiplied.
//
// A tile of keys and one of values are 64 KB, and come from the L2 cache while the block waits. With two stages, the
// copies of the next tiles overlap the products and the softmax of an iteration. One barrier per iteration suffices:
// after it, all threads have read the stage that is written next. Upstream's pipelining requires a constant trip count,
// but with a causal mask the trip count depends on the block. Upstream's `memref.multibuffer` allocates the stages.
//
// Left out: each iteration copies its tiles and waits for them.
//
// Before:
//   scf.for %key = 0 to %end step 128 {
//     copy tiles of %key; commit; wait; gpu.barrier; compute; gpu.barrier
//   }
// After:
//   copy tiles of 0; commit
//   scf.for %key = 0 to %end step 128 {
//     wait; gpu.barrier
//     scf.if %key + 128 < %end { copy tiles of %key + 128 to the other stage }
//     commit; compute
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @copy_tiles_ahead(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %keys = transform.structured.match ops{["memref.alloc"]} attributes {keys} in %module
      : (!transform.any_op) -> !transform.op<"memref.alloc">
    %values = transform.structured.match ops{["memref.alloc"]} attributes {values} in %module
      : (!transform.any_op) -> !transform.op<"memref.alloc">
    // skip_analysis: upstream looks for one op that overwrites a tile, and here all threads do so together.
    %0 = transform.memref.multibuffer %keys {factor = 2 : i64, skip_analysis}
      : (!transform.op<"memref.alloc">) -> !transform.any_op
    // Two warpgroups that are half an iteration apart read and write three tiles of values; the indices of four stages
    // are remainders by a power of two.
    %1 = transform.memref.multibuffer %values {factor = 2 : i64, skip_analysis,
        knobs = {factor = "4 if decouple_warpgroups and rows == 128 else 2"}}
      : (!transform.op<"memref.alloc">) -> !transform.any_op
    "tc.copy_tiles_ahead"(%module) : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield
  }
}
