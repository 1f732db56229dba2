// A matmul on tensor cores through wgmma: any m, n and k, C = AB and C = AB + C, sums rounded to C's type at the end.
//
// So far its front: from tensors to a launch on buffers, with whole tiles of A, B and the sums in shared memory. A and
// B each row- or column-major.
//
// Every step is a file in steps/; those that know nothing of edges are shared with `wmma` and `mma_sync`.

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @normalize_payload(!transform.any_op {transform.readonly})
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_c_in_shared_memory(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @tile_reduction(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_operands_in_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})

  transform.named_sequence @wgmma(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        whole_tiles = "0", rounds_c = "1"
      }} {
    // The tile of C that a block computes, and the depth of one step of its k loop.
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [64, 128, 256] -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 256 from options = [64, 128, 256] -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = [32, 64, 128] -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"] -> !transform.any_param

    // linalg on tensors: cut C for the grid and the reduction for shared memory, in whole tiles with zeros at edges.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @stage_c_in_shared_memory failures(propagate) (%module, %block_m, %block_n, %block_k)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_reduction failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_operands_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Buffers: the grid.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
