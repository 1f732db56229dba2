// A matmul on Hopper's matrix unit with a ring of tiles: loads run ahead of the products, issued by the same threads.
//
// The second chapter. As `wgmma_single_stage`, with `stages` places for tiles: while one is multiplied, TMA fills the
// others. The thread that issues the loads is one of those that multiply; `wgmma` gives it a warpgroup of its own.
//
// Source: Ozen, "Hopper GEMM in MLIR", the multistage kernel. Every step is a file in steps/.

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @normalize_payload(!transform.any_op {transform.readonly})
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_c_in_shared_memory(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @tile_k(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly})
  transform.named_sequence private @stage_operands_in_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @rasterize_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @convert_to_wgmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @multistage_loads(!transform.any_op {transform.readonly})
  transform.named_sequence private @direct_store_epilogue(!transform.any_op {transform.readonly})
  transform.named_sequence private @pack_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @lower_to_wgmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @pass_descriptors_by_value(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_to_nvvm(!transform.any_op {transform.consumed},
    !transform.any_param {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @lower_to_inline_ptx(!transform.any_op {transform.readonly})

  transform.named_sequence @wgmma_multistage(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        whole_tiles = "0", rounds_c = "1", normalizes = "1",
        load_n = "block_n if b_layout == 'column' else (block_n * a_bits + 511) // 512 * 512 // a_bits if block_n * a_bits > 256 else 256 // a_bits",
        stages_bytes = "stages * (block_m + load_n) * block_k * a_bits / 8",
        tile_warpgroups = "consumer_warpgroups", shared_bytes = "stages_bytes + 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [64, 128, 192, 256]
      {description = "rows of the tile of C that a block computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 128 from options = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %consumer_warpgroups = transform.tune.knob<"consumer_warpgroups"> = 2 from options = [1, 2, 3, 4]
      {description = "consumer warpgroups that share a tile, each computing a slice of its rows"} -> !transform.param<i64>
    %stages = transform.tune.knob<"stages"> = 4 from options = [1, 2, 3, 4, 5, 6, 7, 8]
      {description = "places for tiles; loads run one less than that ahead"} -> !transform.param<i64>
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // linalg on tensors: cut C for the grid and the reduction for shared memory, whole tiles with zeros at the edges.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @stage_c_in_shared_memory failures(propagate) (%module, %block_m, %block_n, %block_k)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_operands_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Buffers: the grid, in the order that suits the L2 cache.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()

    // TMA into the matrix unit, ahead of it.
    transform.include @convert_to_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multistage_loads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @direct_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()

    // A kernel of its own, down to the machine.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_to_wgmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @pass_descriptors_by_value failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.include @lower_to_inline_ptx failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
