// A pipeline of a user's own with a step too bold: it drops the barrier between the copies and the product.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @tile_k(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_in_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_copies_to_threads(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_matmul_to_warps(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})

  transform.named_sequence @drop_barrier(%module: !transform.any_op {transform.readonly}) {
    %barriers = transform.structured.match ops{["gpu.barrier"]} in %module : (!transform.any_op) -> !transform.any_op
    %first, %second = transform.split_handle %barriers : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %nothing = transform.structured.replace %first {
      gpu.wait
    } : (!transform.any_op) -> !transform.any_op
    transform.yield
  }

  transform.named_sequence @broken(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        threads = "block_m / warp_m * (block_n / warp_n) * 32", run = "8", a_width = "block_k", b_width = "block_n"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 64 from options = [64, 128] -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 64 from options = [64, 128] -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 32 from options = [16, 32] -> !transform.param<i64>
    %warp_m = transform.tune.knob<"warp_m"> = 32 from options = [32, 64] -> !transform.param<i64>
    %warp_n = transform.tune.knob<"warp_n"> = 32 from options = [32, 64] -> !transform.param<i64>
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @drop_barrier failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
