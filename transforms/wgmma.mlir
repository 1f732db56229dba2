// A matmul on Hopper's matrix unit, warp-specialized and persistent: what a product on an H100 or H200 is compiled by.
//
// The third chapter. One warpgroup loads, the others multiply; blocks stay and take tile after tile; clusters load what
// they share once; sums leave through shared memory while the next tile is under way. Any m, n and k whose rows are
// multiples of 16 bytes, C = AB and C = AB + C, A and B each row- or column-major, f16, bf16, tf32 and fp8 operands,
// sums in f32 (f16: also in f16), rounded to C's type at the end.
//
// Source: Ozen, "Hopper GEMM in MLIR", up to the warp-specialized kernel; from there on what it names as future work.
// Every step is a file in steps/; it says what it does, why it pays, and shows the IR before and after.

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
  transform.named_sequence private @form_clusters(!transform.any_op {transform.readonly})
  transform.named_sequence private @rasterize_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @split_k(!transform.any_op {transform.readonly})
  transform.named_sequence private @make_persistent(!transform.any_op {transform.readonly})
  transform.named_sequence private @convert_to_wgmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @pipeline_wgmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @specialize_warps(!transform.any_op {transform.readonly})
  transform.named_sequence private @pingpong_consumers(!transform.any_op {transform.readonly})
  transform.named_sequence private @multicast_tiles(!transform.any_op {transform.readonly})
  transform.named_sequence private @shrink_tma_boxes(!transform.any_op {transform.readonly})
  transform.named_sequence private @enable_dependent_launch(!transform.any_op {transform.readonly})
  transform.named_sequence private @tma_store_epilogue(!transform.any_op {transform.readonly})
  transform.named_sequence private @direct_store_epilogue(!transform.any_op {transform.readonly})
  transform.named_sequence private @stream_k_tail(!transform.any_op {transform.readonly})
  transform.named_sequence private @pack_shared_memory(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @lower_to_wgmma(!transform.any_op {transform.readonly})
  transform.named_sequence private @pass_descriptors_by_value(!transform.any_op {transform.readonly})
  transform.named_sequence private @narrow_indices(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower_to_nvvm(!transform.any_op {transform.consumed},
    !transform.any_param {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @lower_to_inline_ptx(!transform.any_op {transform.readonly})

  transform.named_sequence @wgmma(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        whole_tiles = "0", rounds_c = "1", normalizes = "1",
        load_n = "block_n if b_layout == 'column' else (block_n * a_bits + 511) // 512 * 512 // a_bits if block_n * a_bits > 256 else 256 // a_bits",
        stages_bytes = "stages * (block_m + load_n) * block_k * a_bits / 8",
        k_steps = "(k + block_k - 1) // block_k",
        is_pingpong = "schedule == 'pingpong'",
        tile_warpgroups = "1 if is_pingpong else consumer_warpgroups", consumers = "2 if is_pingpong else consumer_warpgroups",
        accumulator_registers = "block_m / tile_warpgroups * block_n / 128",
        consumer_registers = "160 if consumers > 2 else 240 if accumulator_registers > 160 else 232",
        producer_registers = "32 if consumers > 2 else 24 if accumulator_registers > 160 else 40",
        a_row_bytes = "(block_k if a_layout == 'row' else block_m) * a_bits // 8",
        b_row_bytes = "(block_k if b_layout == 'column' else load_n) * a_bits // 8",
        a_boxes = "a_row_bytes // (128 if a_row_bytes % 128 == 0 else 64 if a_row_bytes % 64 == 0 else 32)",
        b_boxes = "b_row_bytes // (128 if b_row_bytes % 128 == 0 else 64 if b_row_bytes % 64 == 0 else 32)",
        box_bytes = "128 if block_n * c_bits % 1024 == 0 else 64 if block_n * c_bits % 512 == 0 else 32",
        epilogue_bytes = "consumers * epilogue_stages * (block_m / tile_warpgroups) * box_bytes if epilogue == 'tma' else 0",
        cluster_workspace_bytes = "block_m * (block_n * acc_bits // 8 + 32) if split_k > 1 and split_k_workspace == 'cluster' else 0",
        tiles = "((m + block_m - 1) // block_m) * ((n + block_n - 1) // block_n)",
        global_workspace_bytes = "tiles * split_k * block_m * block_n * acc_bits // 8",
        shared_bytes = "stages_bytes + epilogue_bytes + cluster_workspace_bytes + 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [64, 128, 192, 256]
      {description = "rows of the tile of C that a block computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 256 from options = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %consumer_warpgroups = transform.tune.knob<"consumer_warpgroups"> = 2 from options = [1, 2, 3]
      {description = "consumer warpgroups that share a tile, each computing a slice of its rows"} -> !transform.param<i64>
    %schedule = transform.tune.knob<"schedule"> = "cooperative" from options = ["cooperative", "pingpong"]
      {description = "cooperative: consumer warpgroups share a tile; pingpong: two consumer warpgroups compute alternate tiles"}
      -> !transform.any_param
    %stages = transform.tune.knob<"stages"> = 4 from options = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
      {description = "stages of the shared-memory pipeline; TMA loads run as many k steps ahead"} -> !transform.param<i64>
    %persistent_blocks = transform.tune.knob<"persistent_blocks"> = 132 from options = {multiple_of = 1}
      {description = "thread blocks of the persistent kernel, one a multiprocessor (an H200 has 132); 0 launches one block per tile"}
      -> !transform.param<i64>
    %cluster_m = transform.tune.knob<"cluster_m"> = 1 from options = [1, 2, 4]
      {description = "thread blocks of a cluster along m; they share tiles of B by multicast"} -> !transform.param<i64>
    %cluster_n = transform.tune.knob<"cluster_n"> = 1 from options = [1, 2, 4]
      {description = "thread blocks of a cluster along n; they share tiles of A by multicast"} -> !transform.param<i64>
    %split_k = transform.tune.knob<"split_k"> = 1 from options = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]
      {description = "thread blocks that split the k loop of a tile (split-K), for problems with few tiles"} -> !transform.param<i64>
    %split_k_workspace = transform.tune.knob<"split_k_workspace"> = "cluster" from options = ["cluster", "memory"]
      {description = "where split-K reduces partial sums: in the shared memory of a cluster, or in a workspace in global memory"}
      -> !transform.any_param
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %epilogue = transform.tune.knob<"epilogue"> = "tma" from options = ["tma", "registers"]
      {description = "tma: accumulators go through shared memory to C by TMA stores; registers: threads store them directly"} -> !transform.any_param
    %epilogue_stages = transform.tune.knob<"epilogue_stages"> = 2 from options = [1, 2, 4]
      {description = "shared-memory buffers of a consumer warpgroup for TMA stores, with epilogue = tma"}
      -> !transform.param<i64>
    %tile_scheduler = transform.tune.knob<"tile_scheduler"> = "data_parallel" from options = ["data_parallel", "stream_k"]
      {description = "data_parallel: whole tiles; stream_k: the tiles of the last, partial wave are split along k over all blocks"} -> !transform.any_param
    %dependent_launch = transform.tune.knob<"dependent_launch"> = true from options = [true, false]
      {description = "programmatic dependent launch: the prologue overlaps the end of the kernel before it in the stream"} -> !transform.any_param
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

    // Buffers: the grid, its clusters, the order of tiles, and the blocks that take them.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @form_clusters failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @split_k failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @make_persistent failures(propagate) (%module) : (!transform.any_op) -> ()

    // TMA into the matrix unit, and the roles of warpgroups.
    transform.include @convert_to_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @pipeline_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @specialize_warps failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"schedule"> selected_region = 0
        attributes {knobs = {selected_region_attr = "is_pingpong"}} {
    }, {
      transform.include @pingpong_consumers failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @multicast_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @shrink_tma_boxes failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"dependent_launch"> selected_region = 1
        attributes {knobs = {selected_region_attr = "dependent_launch"}} {
    }, {
      transform.include @enable_dependent_launch failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The way of the sums to C.
    transform.tune.alternatives<"epilogue"> selected_region = 0
        attributes {knobs = {selected_region_attr = "epilogue == 'registers'"}} {
      transform.include @tma_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @direct_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The wave in which there are fewer tiles than blocks.
    transform.tune.alternatives<"tile_scheduler"> selected_region = 0
        attributes {knobs = {selected_region_attr = "tile_scheduler == 'stream_k'"}} {
    }, {
      transform.include @stream_k_tail failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // A kernel of its own, down to the machine.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_to_wgmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @pass_descriptors_by_value failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @narrow_indices failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.include @lower_to_inline_ptx failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
