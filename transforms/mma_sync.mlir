// A matmul on tensor cores through mma.sync and ldmatrix, near the card's own limit for these instructions.
//
// What stands in the way of WMMA is gone: fragments are registers with a known layout, shared memory is swizzled
// instead of padded, tiles arrive by asynchronous copies several stages ahead, fragments are loaded one k sub-step
// ahead of their products, across the barrier too, and blocks are ordered for the L2 cache. For sm_80 and later.
//
// f16 and bf16 with f32 sums, f16 with f16 sums, f32 multiplied as tf32, i8 with i32 sums; A and B each row- or
// column-major.
//
// Every step is a file in steps/; most are shared with `wmma`.

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @normalize_payload(!transform.any_op {transform.readonly})
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @tile_k(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_in_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @rasterize_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_copies_to_threads(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_copies_cyclically(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_matmul_to_warps(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @vectorize_copies(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_fragments(!transform.any_op {transform.readonly})
  transform.named_sequence private @multi_buffer(!transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})
  transform.named_sequence private @convert_to_mma_sync(!transform.any_op {transform.readonly})
  transform.named_sequence private @merge_ldmatrix(!transform.any_op {transform.readonly})
  transform.named_sequence private @convert_to_cp_async(!transform.any_op {transform.readonly})
  transform.named_sequence private @swizzle_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @pack_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @pipeline_copies(!transform.any_op {transform.readonly})
  transform.named_sequence private @bypass_l1(!transform.any_op {transform.readonly})
  transform.named_sequence private @rotate_loop(!transform.any_op {transform.readonly})
  transform.named_sequence private @interleave_copies(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_transfers(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_to_nvvm(!transform.any_op {transform.consumed},
    !transform.any_param {transform.readonly}) -> !transform.any_op

  transform.named_sequence @mma_sync(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        whole_tiles = "1", rounds_c = "0", normalizes = "1",
        threads = "block_m / warp_m * (block_n / warp_n) * 32",
        half_type = "a_type if a_bits == 16 else 'f16'",
        run = "128 / a_bits",
        a_rows = "1 if map_copies_cyclically else block_m * block_k / (threads * run)",
        b_rows = "1 if map_copies_cyclically else block_k * block_n / (threads * run)",
        a_width = "block_k if a_layout == 'row' else block_m",
        b_width = "block_n if b_layout == 'row' else block_k",
        fragment_n = "8", fragment_k = "256 / a_bits",
        shared_bytes = "stages * (block_m * block_k + block_k * block_n) * a_bits / 8",
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
    %stages = transform.tune.knob<"stages"> = 3 from options = [2, 3, 4, 5]
      {description = "stages of the shared-memory pipeline; copies run stages - 1 tiles ahead"} -> !transform.param<i64>
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_80" from options = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // linalg on tensors: cut C for the grid and the reduction for shared memory.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Buffers: the grid, the threads, the warps.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"copies"> selected_region = 1
        attributes {knobs = {selected_region_attr = "map_copies_cyclically"}} {
      transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @map_copies_cyclically failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Vectors: copies 16 bytes wide, products 16 x 8 x 16.
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()

    // C in registers, a ring of tiles; fragments with a known layout.
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_mma_sync failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @merge_ldmatrix failures(propagate) (%module) : (!transform.any_op) -> ()

    // Copies that pass the registers by, into tiles without bank conflicts.
    transform.include @convert_to_cp_async failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @swizzle_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // A kernel of its own.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op

    // The schedule of the main loop.
    transform.include @pipeline_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @bypass_l1 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @rotate_loop failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @interleave_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // Down to the machine.
    transform.include @lower_transfers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield
  }
}
