// Compiles a matmul to a warp-specialized persistent Hopper kernel: a producer warpgroup issues TMA loads, consumer
// warpgroups run wgmma, and the epilogue overlaps the next tile.
//
// This is the third Hopper pipeline, which `stepladder compile` uses for products on an H100 or H200. It adds to
// `wgmma_multistage` a persistent tile loop, warp specialization with cooperative or ping-pong consumers, clusters with
// multicast, split-K or a stream-K tail, a TMA store epilogue, and programmatic dependent launch.
//
// It takes any m, n and k, C = AB and C = AB + C, A and B each row- or column-major, and pairs of products of one A.
// Operands are f16, bf16, f32 and fp8 with f32 accumulators (f16: also f16) and i8 with i32 accumulators; the epilogue
// rounds to C's type. Kernels before the matmul repack operands whose rows are not multiples of 16 bytes for TMA, and
// transpose operands of 8 and 32 bits for wgmma. It leaves a `gpu.module` with the kernels, in the NVVM dialect with
// inline PTX, and a host function that launches them.
//
// Source: Ozen, "Hopper GEMM in MLIR", up to the warp-specialized kernel; the rest is what it names as future work.
// Every step is a file in steps/, whose head comment describes it. Stepladder supplies the declarations of the included
// steps.
//
// How to read it: the attribute `derived` names expressions over knobs, which the steps use in their requirements. Then
// come the knobs (`transform.tune.knob`), and the steps in order (`transform.include`). A step that runs only for some
// knobs or payloads is in a `transform.tune.alternatives`: the expression `selected_region_attr` gives the number, from
// 0, of the region that runs, and an empty region runs nothing.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @wgmma(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        // What this pipeline supports, for the requirements of the steps: tiles that do not divide the problem,
        // elementwise ops such as the rounding to C's type, other forms of a matmul, operands that elementwise ops
        // compute, pairs of products, parts of buffers, and operands of a batch with several strides.
        whole_tiles = "0", rounds_c = "1", normalizes = "1", prepares = "1", takes_pairs = "1", takes_windows = "1",
        reads_strided_batches = "1",

        // Columns of B's tile as loaded: rows along n come in whole boxes, of 64 bytes or one of 32 (`tc.load_by_tma`).
        load_bits = "256 if block_n * a_bits <= 256 else 512",
        load_n =
          "block_n if b_layout == 'column' else (block_n * a_bits + load_bits - 1) // load_bits * load_bits // a_bits",
        // Each stage has the large and the small parts of tiles of f32; see `split_into_tf32`. Of A, which threads may
        // split (`split_a_into_tf32`), it then has the tile, and a thread has both parts. Threads that also split B
        // (`split_b_in_shared_memory`) replace its tile by both parts.
        splits_f32 = "1", parts = "2 if is_f32 and not allow_tf32 else 1",
        splits_in_registers = "parts == 2 and split_f32 != 'kernels'",
        splits_in_shared_memory = "parts == 2 and split_f32 == 'shared'",
        a_parts = "1 if splits_in_registers else parts",
        // Sums of fp8 leave the accumulators of the tensor core after each k step; see `promote_accumulators`.
        promotes = "is_fp8 and not fast_accum",
        fragment_registers = "staged_m // tile_warpgroups * block_k // 64",
        // Bits in shared memory for an element of A: where A is in registers, of its source.
        held_bits = "register_source_bits if register_source_bits > 0 else a_bits",
        // Rows of a tile in shared memory and in registers: wgmma multiplies 64 at a time.
        staged_m = "(block_m + 63) // 64 * 64",
        stages_bytes = "stages * ((a_parts * staged_m * held_bits + parts * load_n * products * a_bits) * block_k / 8)",
        k_steps = "(k + block_k - 1) // block_k",

        // Whether the kernel is for few rows: it reads weights before it waits for the previous kernel, each weight
        // once.
        streams_weights = "early_weights or prefetch_steps > 0",
        // The bits of a row of the weights, which are the larger operand, and whether a preceding kernel splits or
        // transposes them. Operands that threads split are loaded unmodified.
        is_weight_a = "a_matrices * m > b_matrices * n * products",
        weight_row_bits =
          "a_given_row * a_bits if is_weight_a else (n if b_layout == 'row' else k) * b_bits",
        a_given_row = "k if a_layout == 'row' and a_transposed == 0 else m",
        splits_weights = "parts == 2 and not (splits_in_shared_memory or splits_in_registers and is_weight_a)",
        copies_a = "a_transposed == 1 and not splits_in_registers",
        copies_b = "b_transposed == 1 and not splits_in_shared_memory",
        transposes_weights = "copies_a if is_weight_a else copies_b",

        // Ping-pong has two consumer warpgroups, each with a tile of its own; cooperative consumers share one tile.
        is_pingpong = "schedule == 'pingpong'",
        tile_warpgroups = "1 if is_pingpong else consumer_warpgroups",
        consumers = "2 if is_pingpong else consumer_warpgroups",

        // 32-bit registers per thread for an f32 accumulator: a warpgroup has 128 threads.
        accumulator_registers = "staged_m // tile_warpgroups * block_n * products // 128",
        // The register budget of setmaxnreg. A kernel starts with 65536 / threads registers per thread, in multiples of
        // 8: 168 for three warpgroups (one producer, two consumers), 128 for four. setmaxnreg moves registers from the
        // producer to the consumers, and the sum cannot grow:
        //   40 + 2 x 232 = 24 + 2 x 240 = 504 = 3 x 168
        //   32 + 3 x 160 = 512 = 4 x 128
        // With an accumulator of more than 160 registers a consumer takes 240, and the producer 24, the smallest count
        // of setmaxnreg. With two blocks per multiprocessor, each has half as many:
        //   40 + 216 = 256 = 2 x 128
        //   24 + 2 x 104 = 232 < 3 x 80
        //   24 + 3 x 72 = 240 < 4 x 64
        threads = "(consumers + 1) * 128",
        // What ptxas compiles each wgmma with: its sums, and 26 more, are in registers of one thread at once.
        starting_registers = "65536 // (threads * min_blocks_per_sm) // 8 * 8",
        is_alone = "min_blocks_per_sm < 2",
        consumers_of_one = "160 if consumers > 2 else 240 if accumulator_registers > 160 else 232",
        producer_of_one = "32 if consumers > 2 else 24 if accumulator_registers > 160 else 40",
        consumers_of_two = "72 if consumers > 2 else 104 if consumers > 1 else 216",
        producer_of_two = "24 if consumers > 1 else 40",
        consumer_registers = "consumers_of_one if is_alone else consumers_of_two",
        producer_registers = "producer_of_one if is_alone else producer_of_two",
        // Columns of a product of fp8 whose sums fit beside the accumulators: all, or a multiple of 8.
        holds_two = "2 * accumulator_registers + 32 <= consumer_registers",
        free_registers = "consumer_registers - 32 - accumulator_registers",
        free_columns = "free_registers * 128 // (staged_m // tile_warpgroups) // 8 * 8",
        promoted_columns = "block_n * products if holds_two else free_columns",
        // Registers for operands of the epilogue that are loaded before the last MMA ends; 40 are left for addresses.
        operand_registers = "consumer_registers - accumulator_registers - 40",
        // A matrix that the epilogue reads is copied to boxes of C during the main loop, which takes registers too.
        copies_operand = "operand_registers >= 32 and parts == 1",

        // The boxes of a tile, each as wide as the widest swizzle that divides a row, and their rows: blocks of a
        // cluster load whole boxes or slices of their rows.
        a_rows = "staged_m if a_layout == 'row' else block_k",
        b_rows = "block_n if b_layout == 'column' else block_k",
        a_row_bytes = "(block_k if a_layout == 'row' else staged_m) * a_bits // 8",
        b_row_bytes = "(block_k if b_layout == 'column' else load_n) * a_bits // 8",
        a_boxes = "a_row_bytes // (128 if a_row_bytes % 128 == 0 else 64 if a_row_bytes % 64 == 0 else 32)",
        b_boxes = "b_row_bytes // (128 if b_row_bytes % 128 == 0 else 64 if b_row_bytes % 64 == 0 else 32)",

        // The bytes of a row of a TMA store box: the widest swizzle (128, 64 or 32 bytes) that divides a row of the
        // tile.
        box_bytes = "128 if block_n * c_bits % 1024 == 0 else 64 if block_n * c_bits % 512 == 0 else 32",
        // Each consumer warpgroup has epilogue_stages boxes, as high as its rows of the tile; for a transposed C, boxes
        // of 64 rows of the tile, and up to 64 of its columns. Results beside C have boxes of their own, of at most 128
        // bytes.
        box_columns = "(block_n // 8 + (block_n + 63) // 64 - 1) // ((block_n + 63) // 64) * 8",
        box_tile_bytes =
          "box_columns * 64 * c_bits // 8 if c_layout == 'column' else staged_m // tile_warpgroups * box_bytes",
        // How many boxes a warpgroup's part of a tile has, of a row-major and of a transposed C.
        row_boxes = "block_n * c_bits // 8 // box_bytes",
        column_boxes = "staged_m // tile_warpgroups // 64 * ((block_n + 63) // 64)",
        c_boxes = "column_boxes if c_layout == 'column' else row_boxes",
        // A matrix that the epilogue reads, C itself too, fits in the boxes of a single result.
        holds_matrix = "read_matrices > 0 and results == 1 and (c_layout == 'row' or c_bits == 16)",
        copies_boxes = "copies_operand and is_tma and holds_matrix",
        result_box_bytes = "box_columns * 64 * 4 if c_layout == 'column' else staged_m // tile_warpgroups * 128",
        result_tile_bytes = "box_tile_bytes + (results - 1) * result_box_bytes",
        // With epilogue = rows, each consumer warpgroup has 64 rows of columns_at_once columns, of the type of the sums
        // where elementwise ops follow, padded against bank conflicts.
        is_tma = "epilogue == 'tma'", is_rows = "epilogue == 'rows'",
        row_bits = "acc_bits if has_elementwise else c_bits",
        line_columns = "epilogue_stages * 1024 // (row_bits * products) // 8 * 8",
        columns_at_once = "line_columns if line_columns < block_n else block_n",
        held_columns = "columns_at_once * products",
        row_buffer_bytes = "64 * (held_columns + (8 if held_columns % 16 == 0 else 16)) * row_bits // 8",
        epilogue_bytes =
          "consumers * (epilogue_stages * result_tile_bytes if is_tma else row_buffer_bytes if is_rows else 0)",

        // The split-K workspace. In global memory it has one accumulator for each tile and split. In shared memory it
        // has one accumulator, with as many rows for each split; rows are padded by 32 bytes against bank conflicts,
        // those of a transposed accumulator by 16. Where blocks send partial sums (`push_partial_sums`), it has vectors
        // of four sums of each thread instead, as many for each split, or pairs if a thread has no more. The size
        // covers both.
        only_rounds = "has_consumer and not has_elementwise",
        sends_few = "only_rounds and accumulator_registers <= 104",
        sends_sums = "split_k > 1 and split_k_workspace == 'cluster' and (streams_weights or sends_few)",
        transposed_rows = "(block_n + split_k - 1) // split_k * split_k",
        plain_rows = "(staged_m + split_k - 1) // split_k * split_k",
        transposed_bytes = "transposed_rows * (staged_m * acc_bits // 8 + 16)",
        plain_bytes = "plain_rows * (block_n * acc_bits // 8 + 32)",
        padded_bytes = "transposed_bytes if c_layout == 'column' else plain_bytes",
        pairs = "staged_m * block_n // (consumers * 256)",
        pairs_of_split = "1 if pairs <= split_k else (pairs // 2 + split_k - 1) // split_k * 2",
        sent_bytes = "pairs_of_split * split_k * consumers * 256 * acc_bits // 8",
        workspace_tile_bytes = "sent_bytes if sent_bytes > padded_bytes else padded_bytes",
        cluster_workspace_bytes = "workspace_tile_bytes if split_k > 1 and split_k_workspace == 'cluster' else 0",
        tiles = "batch * ((m + block_m - 1) // block_m) * ((n + block_n - 1) // block_n)",
        global_workspace_bytes = "tiles * split_k * staged_m * block_n * acc_bits // 8",

        // 1024 more bytes cover the mbarriers, in static shared memory, and the gap to the dynamic array after them,
        // which starts at a multiple of 1024: the period of the 128-byte swizzle, 8 rows of 128 bytes.
        shared_bytes = "stages_bytes + epilogue_bytes + cluster_workspace_bytes + 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128
      from options = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
                      184, 192, 200, 208, 216, 224, 232, 240, 248, 256]
      {description = "rows of the tile of C that a block computes; multiples of 64 if A is column-major"}
      -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 256
      from options = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
                      184, 192, 200, 208, 216, 224, 232, 240, 248, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 64 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %consumer_warpgroups = transform.tune.knob<"consumer_warpgroups"> = 2 from options = [1, 2, 3]
      {description = "consumer warpgroups that share a tile, each computing a slice of its rows"}
      -> !transform.param<i64>
    %schedule = transform.tune.knob<"schedule"> = "cooperative" from options = ["cooperative", "pingpong"]
      {description = "cooperative: consumer warpgroups share a tile; pingpong: two of them compute alternate tiles"}
      -> !transform.any_param
    %stagger = transform.tune.knob<"stagger"> = 0 from options = [0, 1, 2, 3, 4, 5, 6, 7]
      {description = "last k steps of a tile that a consumer delays until the previous one has issued all; 0: none"}
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
    %split_k = transform.tune.knob<"split_k"> = 1
      from options = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]
      {description = "thread blocks that split the k loop of a tile (split-K), for problems with few tiles"}
      -> !transform.param<i64>
    %split_k_workspace = transform.tune.knob<"split_k_workspace"> = "cluster" from options = ["cluster", "memory"]
      {description = "where split-K reduces partial accumulators: shared memory of a cluster, or global memory"}
      -> !transform.any_param
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %epilogue = transform.tune.knob<"epilogue"> = "tma" from options = ["tma", "registers", "rows"]
      {description = "store of C by TMA (tma), by whole rows of any alignment (rows), or from registers"}
      -> !transform.any_param
    %epilogue_stages = transform.tune.knob<"epilogue_stages"> = 2 from options = [1, 2, 3, 4]
      {description = "tma: buffers of C per consumer warpgroup; rows: width of its single buffer in 128 bytes"}
      -> !transform.param<i64>
    %store_threads = transform.tune.knob<"store_threads"> = 128 from options = [128, 32]
      {description = "epilogue = tma: threads that store a part of C together, a warpgroup (128) or a warp (32)"}
      -> !transform.param<i64>
    %tile_scheduler = transform.tune.knob<"tile_scheduler"> = "data_parallel"
      from options = ["data_parallel", "stream_k"]
      {description = "data_parallel: whole tiles; stream_k: the last, partial wave is split along k over all blocks"}
      -> !transform.any_param
    %dependent_launch = transform.tune.knob<"dependent_launch"> = true from options = [true, false]
      {description = "programmatic dependent launch: the prologue overlaps the end of the previous kernel"}
      -> !transform.any_param
    %launch_trigger = transform.tune.knob<"launch_trigger"> = "early" from options = ["early", "exit"]
      {description = "trigger of the next launch: early, or the exit of blocks, which keeps their multiprocessors"}
      -> !transform.any_param
    %prefetch_steps = transform.tune.knob<"prefetch_steps"> = 0 from options = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
      {description = "k steps whose tiles of the larger operand are prefetched to L2 before the previous kernel ends"}
      -> !transform.param<i64>
    %early_weights = transform.tune.knob<"early_weights"> = false from options = [false, true]
      {description = "load the first stages of the larger operand before the previous kernel has ended"}
      -> !transform.any_param
    %kept_weights = transform.tune.knob<"kept_weights"> = 0
      from options = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
      {description = "sixteenths of the larger operand that L2 keeps: loaded without evict_first; 0: none"}
      -> !transform.param<i64>
    %elect_producer = transform.tune.knob<"elect_producer"> = false from options = [false, true]
      {description = "elect the thread that issues TMA loads (elect.sync), so that ptxas knows it is a single one"}
      -> !transform.any_param
    %min_blocks_per_sm = transform.tune.knob<"min_blocks_per_sm"> = 1 from options = [1, 2]
      {description = "blocks that fit on a multiprocessor at the same time, with their registers and shared memory"}
      -> !transform.param<i64>
    %swap_operands = transform.tune.knob<"swap_operands"> = false from options = [false, true]
      {description = "compute C^T = B^T A^T, for problems with few rows"} -> !transform.any_param
    %allow_tf32 = transform.tune.knob<"allow_tf32"> = false from options = [false, true]
      {description = "multiply f32 as tf32, which keeps 10 of 23 bits of the fraction; else by three products of tf32"}
      -> !transform.any_param
    %fast_accum = transform.tune.knob<"fast_accum"> = true from options = [true, false]
      {description = "sum products of fp8 in the tensor core, in about 14 bits; else f32 additions after each k step"}
      -> !transform.any_param
    %split_f32 = transform.tune.knob<"split_f32"> = "kernels" from options = ["kernels", "registers", "shared"]
      {description = "where f32 is split into tf32: before the matmul, A in registers, or also B in shared memory"}
      -> !transform.any_param
    %producers = transform.tune.knob<"producers"> = "kernels" from options = ["kernels", "registers"]
      {description = "elementwise ops on A (B if swapped) run in kernels before the matmul, or in registers"}
      -> !transform.any_param
    %math = transform.tune.knob<"math"> = "fast" from options = ["fast", "libdevice"]
      {description = "fast: sigmoid and GELU are approximated where all results have 8 or 16 bits; libdevice: never"}
      -> !transform.any_param
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // Tensors: tile C for the grid and the reduction for shared memory. Tiles at the edges are padded to whole ones.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"producers"> selected_region = 0
        attributes {knobs = {selected_region_attr = "producers == 'registers'"}} {
    }, {
      transform.include @outline_producer failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @prepare_operands failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @fuse_consumers failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"approximate_math"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast' and approximates"}} {
    }, {
      transform.include @approximate_math failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"swap_operands"> selected_region = 0
        attributes {knobs = {selected_region_attr = "swap_operands"}} {
    }, {
      transform.include @swap_operands failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @transpose_operands failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @repack_operands failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.tune.alternatives<"divide_batch_index"> selected_region = 0
        attributes {knobs = {selected_region_attr = "batch_strides > 1 or read_batch_strides > 0"}} {
    }, {
      transform.include @divide_batch_index failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    %staged_m = transform.param.constant 128 : i64 {knobs = {value = "staged_m"}} -> !transform.param<i64>
    transform.include @stage_c_in_shared_memory failures(propagate) (%module, %staged_m, %block_n, %block_k)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.tune.alternatives<"gather"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      transform.include @gather_products failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_operands_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Memrefs: map tiles to the grid, its clusters and persistent blocks.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @form_clusters failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @split_k failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @make_persistent failures(propagate) (%module) : (!transform.any_op) -> ()

    // A pair of products becomes one, of tiles of both B side by side.
    transform.tune.alternatives<"merge"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      transform.include @merge_products failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // TMA loads and wgmma, split between producer and consumer warpgroups.
    transform.include @convert_to_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"products"> selected_region = 0
        attributes {knobs = {
          selected_region_attr = "3 if promotes else 0 if parts == 1 else 2 if splits_in_registers else 1"}} {
      transform.include @pipeline_wgmma failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @split_into_tf32 failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @split_a_into_tf32 failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
    }
    transform.tune.alternatives<"split_b"> selected_region = 0
        attributes {knobs = {selected_region_attr = "splits_in_shared_memory"}} {
    }, {
      transform.include @split_b_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"register_operand"> selected_region = 0
        attributes {knobs = {selected_region_attr = "producers == 'registers'"}} {
    }, {
      transform.include @prepare_in_registers failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @specialize_warps failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"schedule"> selected_region = 0
        attributes {knobs = {selected_region_attr = "is_pingpong"}} {
    }, {
      transform.include @pingpong_consumers failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @multicast_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @shrink_tma_boxes failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @load_in_place failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"dependent_launch"> selected_region = 1
        attributes {knobs = {selected_region_attr = "dependent_launch"}} {
    }, {
      transform.include @enable_dependent_launch failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    transform.tune.alternatives<"prefetch_to_l2"> selected_region = 0
        attributes {knobs = {selected_region_attr = "prefetch_steps > 0"}} {
    }, {
      transform.include @prefetch_to_l2 failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    transform.tune.alternatives<"early_weights"> selected_region = 0
        attributes {knobs = {selected_region_attr = "early_weights"}} {
    }, {
      transform.include @load_weights_early failures(propagate) (%module) : (!transform.any_op) -> ()
      transform.include @prefetch_weights failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The epilogue.
    transform.tune.alternatives<"epilogue"> selected_region = 0
        attributes {knobs = {selected_region_attr = "0 if epilogue == 'tma' else 1 if epilogue == 'rows' else 2"}} {
      transform.include @tma_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @row_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @direct_store_epilogue failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"push_partial_sums"> selected_region = 0
        attributes {knobs = {selected_region_attr = "sends_sums"}} {
    }, {
      transform.include @push_partial_sums failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @hoist_operand_loads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"balance_reciprocals"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast' and approximates"}} {
    }, {
      transform.include @balance_reciprocals failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"stagger"> selected_region = 0
        attributes {knobs = {selected_region_attr = "stagger > 0"}} {
    }, {
      transform.include @stagger_consumers failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The tail: the last wave, which has fewer tiles than blocks.
    transform.tune.alternatives<"tile_scheduler"> selected_region = 0
        attributes {knobs = {selected_region_attr = "tile_scheduler == 'stream_k'"}} {
    }, {
      transform.include @stream_k_tail failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    transform.tune.alternatives<"elect_producer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "elect_producer"}} {
    }, {
      transform.include @elect_producer failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    transform.tune.alternatives<"promote_accumulators"> selected_region = 0
        attributes {knobs = {selected_region_attr = "promotes"}} {
    }, {
      transform.include @promote_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // The kernel function and its lowering to NVVM and inline PTX.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_repacking_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_to_wgmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @set_min_blocks_per_sm failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @pass_descriptors_by_value failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @narrow_indices failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @lower_fp8_casts failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.tune.alternatives<"flush_denormals"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast' and approximates"}} {
    }, {
      transform.include @flush_denormals failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"evict_weights_first"> selected_region = 0
        attributes {knobs = {selected_region_attr = "streams_weights or kept_weights > 0"}} {
    }, {
      transform.include @evict_weights_first failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"evict_copies_first"> selected_region = 0
        attributes {knobs = {selected_region_attr = "is_tma"}} {
    }, {
      transform.include @evict_copies_first failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    }
    transform.include @keep_shared_addresses failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.include @lower_to_inline_ptx failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
