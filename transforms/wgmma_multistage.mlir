// Compiles a matmul to a multistage Hopper kernel: TMA loads run ahead of wgmma through several shared-memory stages.
//
// This is the second Hopper pipeline: `wgmma_single_stage` with `stages` shared-memory stages. While one stage is
// multiplied, TMA fills the others. A thread of a consumer warpgroup issues the loads; `wgmma` has a producer
// warpgroup.
//
// Source: Ozen, "Hopper GEMM in MLIR", the multistage kernel. Every step is a file in steps/. Stepladder supplies the
// declarations of the included steps.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @wgmma_multistage(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        // What this pipeline supports, for the requirements of the steps: tiles that do not divide the problem,
        // elementwise ops such as the rounding to C's type, other forms of a matmul, operands that elementwise ops
        // compute, pairs of products, and parts of buffers.
        whole_tiles = "0", rounds_c = "1", normalizes = "1", prepares = "1", takes_pairs = "1", takes_windows = "1",
        splits_f32 = "0", staged_m = "block_m",
        // Columns of B's tile as loaded: rows along n come in whole boxes, of 64 bytes or one of 32 (`tc.load_by_tma`).
        load_bits = "256 if block_n * a_bits <= 256 else 512",
        load_n =
          "block_n if b_layout == 'column' else (block_n * a_bits + load_bits - 1) // load_bits * load_bits // a_bits",
        stages_bytes = "stages * (block_m + load_n * products) * block_k * a_bits / 8",
        // 32-bit registers of a thread: of the accumulators, and all of them.
        accumulator_registers = "block_m // tile_warpgroups * block_n * products // 128",
        consumer_registers = "255 if tile_warpgroups < 3 else 65536 // (tile_warpgroups * 128) // 8 * 8",
        // Sums of fp8 leave the accumulators of the tensor core after each k step; see `promote_accumulators`.
        promotes = "is_fp8 and not fast_accum",
        k_steps = "(k + block_k - 1) // block_k",
        // Columns of a product of fp8 whose sums fit beside the accumulators: all, or a multiple of 8.
        holds_two = "2 * accumulator_registers + 32 <= consumer_registers",
        free_registers = "consumer_registers - 32 - accumulator_registers",
        free_columns = "free_registers * 128 // (staged_m // tile_warpgroups) // 8 * 8",
        promoted_columns = "block_n * products if holds_two else free_columns",
        // 1024 more bytes cover the mbarriers, in static shared memory, and the gap to the dynamic array after them,
        // which starts at a multiple of 1024: the period of the 128-byte swizzle, 8 rows of 128 bytes.
        tile_warpgroups = "consumer_warpgroups", shared_bytes = "stages_bytes + 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [64, 128, 192, 256]
      {description = "rows of the tile of C that a block computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 128
      from options = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
                      184, 192, 200, 208, 216, 224, 232, 240, 248, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %consumer_warpgroups = transform.tune.knob<"consumer_warpgroups"> = 2 from options = [1, 2, 3, 4]
      {description = "consumer warpgroups that share a tile, each computing a slice of its rows"}
      -> !transform.param<i64>
    %stages = transform.tune.knob<"stages"> = 4 from options = [1, 2, 3, 4, 5, 6, 7, 8]
      {description = "stages of the shared-memory pipeline; TMA loads run stages - 1 k steps ahead"}
      -> !transform.param<i64>
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %allow_tf32 = transform.tune.knob<"allow_tf32"> = false from options = [false, true]
      {description = "multiply f32 as tf32, which keeps 10 of 23 bits of the fraction; f32 payloads need it"}
      -> !transform.any_param
    %fast_accum = transform.tune.knob<"fast_accum"> = true from options = [true, false]
      {description = "sum products of fp8 in the tensor core, in about 14 bits; else f32 additions after each k step"}
      -> !transform.any_param
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // Tensors: tile C for the grid and the reduction for shared memory. Tiles at the edges are padded to whole ones.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @prepare_operands failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @fuse_consumers failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.tune.alternatives<"divide_batch_index"> selected_region = 0
        attributes {knobs = {selected_region_attr = "batch_strides > 1"}} {
    }, {
      transform.include @divide_batch_index failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @stage_c_in_shared_memory failures(propagate) (%module, %block_m, %block_n, %block_k)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.tune.alternatives<"gather"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      transform.include @gather_products failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_operands_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Memrefs: map tiles to the grid, rasterized for the L2 cache.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"merge"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      transform.include @merge_products failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // TMA loads that run ahead of wgmma, and the epilogue.
    transform.include @convert_to_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multistage_loads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @direct_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"promote_accumulators"> selected_region = 0
        attributes {knobs = {selected_region_attr = "promotes"}} {
    }, {
      transform.include @promote_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The kernel function and its lowering to NVVM and inline PTX.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_to_wgmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @pass_descriptors_by_value failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @lower_fp8_casts failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.include @lower_to_inline_ptx failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
