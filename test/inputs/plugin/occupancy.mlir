// A pipeline with a step of one's own: WMMA from global memory, with so many blocks on a multiprocessor.

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @normalize_payload(!transform.any_op {transform.readonly})
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @tile_k(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_matmul_to_warps(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @map_to_fragments(!transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @convert_to_wmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_transfers(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_to_nvvm(!transform.any_op {transform.consumed},
    !transform.any_param {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @limit_registers(!transform.any_op {transform.readonly})

  transform.named_sequence @occupancy(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        stage_in_shared_memory = "0", whole_tiles = "1", rounds_c = "0", fragment_n = "16", fragment_k = "16",
        threads = "block_m / warp_m * (block_n / warp_n) * 32",
        accumulator_registers = "warp_m * warp_n * c_bits / 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 64 from options = [32, 64, 128] -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 64 from options = [32, 64, 128] -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 32 from options = [16, 32, 64] -> !transform.param<i64>
    %warp_m = transform.tune.knob<"warp_m"> = 32 from options = [16, 32, 64] -> !transform.param<i64>
    %warp_n = transform.tune.knob<"warp_n"> = 32 from options = [16, 32, 64] -> !transform.param<i64>
    // Blocks that have room on a multiprocessor together.
    %resident = transform.tune.knob<"resident"> = 4 from options = [1, 2, 4, 8, 16] -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_80" from options = ["sm_80", "sm_90"] -> !transform.any_param

    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @convert_to_wmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @lower_transfers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.include @limit_registers failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
