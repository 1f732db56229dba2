module attributes {transform.with_named_sequence} {
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly}, !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @tile_reduction(!transform.any_op {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_in_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_copies_to_threads(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_matmul_to_warps(!transform.any_op {transform.readonly}, !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @vectorize_copies(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_fragments(!transform.any_op {transform.readonly})
  transform.named_sequence private @pad_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @multi_buffer(!transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})
  transform.named_sequence private @convert_to_wmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @hide_latency(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_transfers(!transform.any_op {transform.readonly})
  transform.named_sequence private @place_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @lower_to_nvvm(!transform.any_op {transform.consumed}, !transform.any_param {transform.readonly}) -> !transform.any_op

  transform.named_sequence @wmma_upstream(%module: !transform.any_op {transform.consumed}) {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [64, 128, 256] -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 128 from options = [64, 128, 256] -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 32 from options = [16, 32, 64] -> !transform.param<i64>
    %warp_m = transform.tune.knob<"warp_m"> = 64 from options = [16, 32, 64, 128] -> !transform.param<i64>
    %warp_n = transform.tune.knob<"warp_n"> = 64 from options = [16, 32, 64, 128] -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_80" from options = ["sm_75", "sm_80"] -> !transform.any_param

    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_reduction failures(propagate) (%module, %block_k) : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @pad_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_wmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hide_latency failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @lower_transfers failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @place_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %outlined = transform.include @outline_kernel failures(propagate) (%module) : (!transform.any_op) -> !transform.any_op
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%outlined, %target) : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield
  }
}
