// Compiles a XeTile program to a kernel for Hopper GPUs: tiles of work-groups become TMA loads and products of `wgmma`.
//
// A matmul is written as tiles first, as in the pipeline `xetile`; a XeTile program starts with its own, at
// `stage_tiles_in_shared_memory`. From there on the steps are those of `wgmma`, with cooperative consumers and
// data-parallel tiles: `load_tile` becomes a TMA load, `tile_mma` a `wgmma`, and stages of shared memory replace
// prefetches. Tiles need not divide the problem; docs/xetile.md lists what the pipeline refuses.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @xetile_wgmma(%module: !transform.any_op {transform.consumed})
      attributes {program_step = "stage_tiles_in_shared_memory", program_knobs = {
        // A block computes the tile of a work-group, if its accumulators fit in the registers of the warpgroups; a
        // larger tile is divided. For extents that are no option of a knob, the knob keeps its default.
        block_m = "256 if tile_m % 256 == 0 and block_n <= 128 else 64 * consumer_warpgroups",
        block_n = "tile_n if tile_n <= 256 else 256 if tile_n % 256 == 0 else 192 if tile_n % 192 == 0 else 128",
        // A k step may consist of several of the program.
        block_k = "64 if (tile_k % 64 == 0 or k % 64 == 0) and a_bits <= 16 else 32 if tile_k % 32 == 0 else 16",
        consumer_warpgroups = "2 if tile_m % 128 == 0 else 3 if tile_m % 192 == 0 and block_n <= 200 else 1",
        epilogue = "'tma' if n * c_bits % 128 == 0 and block_n * c_bits % 256 == 0 else 'registers'",
        stages = "most_stages if most_stages < 4 else 4"
      }, derived = {
        // Tiles need not divide the problem. The rounding to C's type, and other elementwise ops, are refused.
        whole_tiles = "0", prepares = "0",
        // A tile of C is one of the work-group: warpgroups divide it among themselves later.
        sg_m = "block_m", sg_n = "block_n", subgroups = "1", staged_m = "block_m",

        // Columns of B's tile as loaded: rows along n come in whole boxes, of 64 bytes or one of 32 (`tc.load_by_tma`).
        load_bits = "256 if block_n * a_bits <= 256 else 512",
        load_n =
          "block_n if b_layout == 'column' else (block_n * a_bits + load_bits - 1) // load_bits * load_bits // a_bits",
        // Each stage has the large and the small parts of tiles of f32; see `split_into_tf32`.
        splits_f32 = "1", parts = "2 if is_f32 and not allow_tf32 else 1",
        stage_bytes = "parts * (block_m + load_n) * block_k * a_bits / 8",

        // Cooperative consumer warpgroups share one tile, and there is one split of k.
        split_k = "1", is_alone = "1", launch_trigger = "'early'",
        tile_warpgroups = "consumer_warpgroups", consumers = "consumer_warpgroups",
        // 32-bit registers a thread for an accumulator, and the register budget of setmaxnreg; see `wgmma`.
        accumulator_registers = "block_m / tile_warpgroups * block_n / 128",
        consumer_registers = "160 if consumers > 2 else 240 if accumulator_registers > 160 else 232",
        producer_registers = "32 if consumers > 2 else 24 if accumulator_registers > 160 else 40",
        // Sums of fp8 leave the accumulators of the tensor core after each k step; see `promote_accumulators`.
        promotes = "is_fp8 and not fast_accum",
        k_steps = "(k + block_k - 1) // block_k",
        // Columns of a product of fp8 whose sums fit beside the accumulators: all, or a multiple of 8.
        holds_two = "2 * accumulator_registers + 32 <= consumer_registers",
        free_registers = "consumer_registers - 32 - accumulator_registers",
        free_columns = "free_registers * 128 // (staged_m // tile_warpgroups) // 8 * 8",
        promoted_columns = "block_n if holds_two else free_columns",
        starting_registers = "65536 // ((consumers + 1) * 128) // 8 * 8",

        // The boxes of a tile, each as wide as the widest swizzle that divides a row, and their rows.
        a_rows = "block_m if a_layout == 'row' else block_k",
        b_rows = "block_n if b_layout == 'column' else block_k",
        a_row_bytes = "(block_k if a_layout == 'row' else block_m) * a_bits // 8",
        b_row_bytes = "(block_k if b_layout == 'column' else load_n) * a_bits // 8",
        a_boxes = "a_row_bytes // (128 if a_row_bytes % 128 == 0 else 64 if a_row_bytes % 64 == 0 else 32)",
        b_boxes = "b_row_bytes // (128 if b_row_bytes % 128 == 0 else 64 if b_row_bytes % 64 == 0 else 32)",
        // The bytes of a row of a TMA store box; each consumer has epilogue_stages boxes, as high as its rows.
        box_bytes = "128 if block_n * c_bits % 1024 == 0 else 64 if block_n * c_bits % 512 == 0 else 32",
        copies_operand = "0",
        store_threads = "128",
        epilogue_bytes = "block_m * box_bytes * epilogue_stages if epilogue == 'tma' else 0",
        // 1024 more bytes cover the mbarriers, in static shared memory, and the gap to the dynamic array after them,
        // which starts at a multiple of 1024: the period of the 128-byte swizzle, 8 rows of 128 bytes.
        other_bytes = "epilogue_bytes + 1024", shared_bytes = "stages * stage_bytes + other_bytes",
        // The stages that fit.
        most_stages = "(shared_memory_limit - other_bytes) // stage_bytes"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [64, 128, 192, 256]
      {description = "rows of the tile of C that a block computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 256
      from options = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
                      184, 192, 200, 208, 216, 224, 232, 240, 248, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %consumer_warpgroups = transform.tune.knob<"consumer_warpgroups"> = 2 from options = [1, 2, 3]
      {description = "consumer warpgroups that share a tile, each computing a slice of its rows"}
      -> !transform.param<i64>
    %stages = transform.tune.knob<"stages"> = 4 from options = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
      {description = "stages of the shared-memory pipeline; TMA loads run as many k steps ahead"}
      -> !transform.param<i64>
    %persistent_blocks = transform.tune.knob<"persistent_blocks"> = 132 from options = {multiple_of = 1}
      {description = "blocks of the persistent kernel, one per multiprocessor (an H200 has 132); 0: one block per tile"}
      -> !transform.param<i64>
    %cluster_m = transform.tune.knob<"cluster_m"> = 1 from options = [1, 2, 4]
      {description = "thread blocks of a cluster along m; they share tiles of B by multicast"} -> !transform.param<i64>
    %cluster_n = transform.tune.knob<"cluster_n"> = 1 from options = [1, 2, 4]
      {description = "thread blocks of a cluster along n; they share tiles of A by multicast"} -> !transform.param<i64>
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %epilogue = transform.tune.knob<"epilogue"> = "tma" from options = ["tma", "registers"]
      {description = "tma: TMA stores of accumulators by way of shared memory; registers: direct stores"}
      -> !transform.any_param
    %epilogue_stages = transform.tune.knob<"epilogue_stages"> = 2 from options = [1, 2, 4]
      {description = "shared-memory buffers of a consumer warpgroup for TMA stores, with epilogue = tma"}
      -> !transform.param<i64>
    %dependent_launch = transform.tune.knob<"dependent_launch"> = true from options = [true, false]
      {description = "programmatic dependent launch: the prologue overlaps the end of the previous kernel"}
      -> !transform.any_param
    %allow_tf32 = transform.tune.knob<"allow_tf32"> = false from options = [false, true]
      {description = "multiply f32 as tf32, which keeps 10 of 23 bits of the fraction; else by three products of tf32"}
      -> !transform.any_param
    %fast_accum = transform.tune.knob<"fast_accum"> = true from options = [true, false]
      {description = "sum products of fp8 in the tensor core, in about 14 bits; else f32 additions after each k step"}
      -> !transform.any_param
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // XeTile at work-group level. A program of tiles enters at `stage_tiles_in_shared_memory`.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @stage_tiles_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Memrefs: tiles to clusters and persistent blocks, rasterized for the L2 cache.
    transform.include @form_clusters failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @make_persistent failures(propagate) (%module) : (!transform.any_op) -> ()

    // TMA loads and wgmma, split between producer and consumer warpgroups.
    transform.include @convert_to_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"products"> selected_region = 0
        attributes {knobs = {selected_region_attr = "2 if promotes else 1 if parts == 2 else 0"}} {
      transform.include @pipeline_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @split_into_tf32 failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
    }
    transform.include @specialize_warps failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multicast_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @shrink_tma_boxes failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"dependent_launch"> selected_region = 1
        attributes {knobs = {selected_region_attr = "dependent_launch"}} {
    }, {
      transform.include @enable_dependent_launch failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The epilogue.
    transform.tune.alternatives<"epilogue"> selected_region = 0
        attributes {knobs = {selected_region_attr = "epilogue == 'registers'"}} {
      transform.include @tma_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @direct_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }
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
    transform.include @narrow_indices failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.include @keep_shared_addresses failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.include @lower_to_inline_ptx failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
