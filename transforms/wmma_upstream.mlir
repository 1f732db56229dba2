// The WMMA pipeline in upstream ops only: one command of a stock mlir-opt.
//
//   mlir-opt payload.mlir \
//     --transform-preload-library=transform-library-paths=transforms/steps,transforms/wmma_upstream.mlir \
//     --transform-interpreter=entry-point=wmma_upstream
//
// What `wmma` does beyond it needs ops of the tc extension: payloads in other forms than the normal one, loads issued
// in front of the computation, and more than 48 KB of shared memory.

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
  transform.named_sequence private @vectorize_copies(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_fragments(!transform.any_op {transform.readonly})
  transform.named_sequence private @pad_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @multi_buffer(!transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})
  transform.named_sequence private @allocate_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @convert_to_wmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @prefetch_to_registers(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_transfers(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_to_nvvm(!transform.any_op {transform.consumed},
    !transform.any_param {transform.readonly}) -> !transform.any_op

  transform.named_sequence @wmma_upstream(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        whole_tiles = "1", rounds_c = "0", normalizes = "0",
        threads = "block_m / warp_m * (block_n / warp_n) * 32",
        a_rows = "block_m * block_k / (threads * run)", b_rows = "block_k * block_n / (threads * run)",
        run = "8", a_width = "block_k", b_width = "block_n",
        fragment_n = "16", fragment_k = "16",
        shared_bytes = "stages * 2 * (block_m * (block_k + padding) + block_k * (block_n + padding))",
        accumulator_registers = "warp_m * warp_n * c_bits / 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [16, 32, 64, 128, 256]
      {description = "rows of the tile of C that a block computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 128 from options = [16, 32, 64, 128, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 32 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %warp_m = transform.tune.knob<"warp_m"> = 64 from options = [16, 32, 64, 128]
      {description = "rows of the warp tile, which stays in registers"} -> !transform.param<i64>
    %warp_n = transform.tune.knob<"warp_n"> = 64 from options = [16, 32, 64, 128]
      {description = "columns of the warp tile, which stays in registers"} -> !transform.param<i64>
    %padding = transform.tune.knob<"padding"> = 8 from options = {multiple_of = 8}
      {description = "elements added to each row of a shared tile"} -> !transform.param<i64>
    %stages = transform.tune.knob<"stages"> = 2 from options = [1, 2]
      {description = "places for each tile: 1 is the two-barrier form"} -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_80"
      from options = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // linalg on tensors: cut C for the grid and the reduction for shared memory.
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Buffers: the grid, the threads, the warps.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Vectors: copies 16 bytes wide, products 16 x 16 x 16.
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()

    // Where the tiles lie, and what stays in registers.
    transform.include @pad_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()

    // A kernel of its own.
    transform.include @allocate_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op

    // Tensor cores, and loads that run ahead of them.
    transform.include @convert_to_wmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @prefetch_to_registers failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // Down to the machine.
    transform.include @lower_transfers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield
  }
}
