// Compiles a matmul to a tensor-core kernel with WMMA, by the steps of Katel, Khandelwal and Bondhugula (CC'22).
//
// The pipeline takes C = AB and C = AB + C, for sm_75 and later, also followed by elementwise ops, and elementwise
// functions of two products of one A. A and B are f16 with f32 or f16 accumulators, bf16 with f32 accumulators (from
// sm_80), or i8 with i32 accumulators. It leaves a `gpu.module` with the kernel in the NVVM dialect, and a host
// function that launches it.
//
// It has two levels of tiling (thread-block tiles, warp tiles), stages operands in padded shared memory by 128-bit
// copies, keeps accumulators in registers, and hides global latency by prefetching: the next tile to registers during
// the current one, or several tiles by `cp.async`.
//
// Every step is a file in steps/, whose head comment describes it. Stepladder supplies the declarations of the included
// steps.
//
// How to read it: the attribute `derived` names expressions over knobs, which the steps use in their requirements. Then
// come the knobs (`transform.tune.knob`), and the steps in order (`transform.include`). A step that runs only for some
// knobs or payloads is in a `transform.tune.alternatives`: the expression `selected_region_attr` gives the number, from
// 0, of the region that runs, and an empty region runs nothing.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @wmma(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        // What this pipeline supports, for the requirements of the steps: elementwise ops on the product, such as the
        // rounding to C's type, which read the product from shared memory; other forms of a matmul; operands that
        // elementwise ops compute; pairs of products; parts of buffers; operands of a batch with several strides.
        rounds_c = "1", normalizes = "1", prepares = "1", takes_pairs = "1", takes_windows = "1",
        reads_strided_batches = "1",
        copies_asynchronously = "prefetch == 'cp_async'",
        // Where tiles do not divide the problem, `prepare_edges` runs, and records its sizes.
        whole_tiles = "not has_edges",
        has_edges = "is_sized and (m % block_m != 0 or n % block_n != 0 or k % block_k != 0)",
        // One warp of 32 threads per warp tile.
        threads = "block_m / warp_m * (block_n / warp_n) * 32",
        // A thread copies `run` elements, 16 bytes, of a row; rows of the stored tiles have a_width and b_width
        // elements. a_rows and b_rows are the vectors of a thread that `vectorize_copies` unrolls; cyclic mapping
        // unrolls them itself.
        cyclic = "prefetch == 'cp_async' and map_copies_cyclically",
        a_rows = "1 if cyclic or has_edges else block_m * block_k / (threads * run)",
        b_rows = "1 if cyclic or has_edges else block_k * block_n / (threads * run)",
        run = "128 / a_bits", a_width = "block_k if a_layout == 'row' else block_m",
        b_width = "block_n if b_layout == 'row' else block_k",
        a_pass = "threads * run / a_width", b_pass = "threads * run / b_width",
        // At the edges a vector is the widest that divides the rows of a matrix, of a_length or b_length elements.
        a_length = "k if a_layout == 'row' else m", b_length = "n if b_layout == 'row' else k",
        a_halves = "1 if a_length % run == 0 else 2 if a_length % (run // 2) == 0 else a_quarters",
        a_quarters = "4 if a_length % (run // 4) == 0 else 8 if a_length % (run // 8) == 0 else 16",
        a_run = "run // a_halves if has_edges else run",
        b_halves = "1 if b_length % run == 0 else 2 if b_length % (run // 2) == 0 else b_quarters",
        b_quarters = "4 if b_length % (run // 4) == 0 else 8 if b_length % (run // 8) == 0 else 16",
        b_run = "run // b_halves if has_edges else run",
        is_narrow = "has_edges and (a_run < run or b_run < run)", through_registers = "prefetch == 'registers'",
        // Registers of a thread for the vectors of one step, where they go through registers.
        a_registers = "block_m * block_k // (threads * a_run) * ((a_run * a_bits + 31) // 32)",
        b_registers = "products * (block_k * block_n // (threads * b_run)) * ((b_run * a_bits + 31) // 32)",
        // n and k of one tensor-core instruction; m is 16.
        fragment_n = "16", fragment_k = "16",
        // The products that elementwise ops read, or the copy to C where tiles have edges.
        sums_bytes = "products * block_m * block_n * acc_bits / 8 if has_consumer or has_edges else 0",
        // Bytes of tiles, in rows padded against bank conflicts by `padding` elements of 16 bits.
        a_tile = "block_m * block_k / a_width * (a_width * a_bits / 8 + 2 * padding)",
        b_tile = "block_k * block_n / b_width * (b_width * b_bits / 8 + 2 * padding)",
        shared_bytes = "stages * (a_tile + products * b_tile) + sums_bytes",
        // 32-bit registers per thread for the accumulator: the bits of a warp tile over 32 lanes of 32 bits.
        accumulator_registers = "products * warp_m * warp_n * acc_bits / 1024"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 128 from options = [16, 32, 64, 128, 256]
      {description = "rows of the tile of C that a block computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 128 from options = [16, 32, 64, 128, 256]
      {description = "columns of the tile of C that a block computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 32 from options = [16, 32, 64, 128]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %warp_m = transform.tune.knob<"warp_m"> = 64 from options = [16, 32, 64, 128]
      {description = "rows of the warp tile, which is kept in registers"} -> !transform.param<i64>
    %warp_n = transform.tune.knob<"warp_n"> = 64 from options = [16, 32, 64, 128]
      {description = "columns of the warp tile, which is kept in registers"} -> !transform.param<i64>
    %padding = transform.tune.knob<"padding"> = 8 from options = {multiple_of = 8}
      {description = "elements of 16 bits added to each row of a shared tile"} -> !transform.param<i64>
    %prefetch = transform.tune.knob<"prefetch"> = "registers" from options = ["registers", "cp_async"]
      {description = "how the next tiles are prefetched: through registers (CC'22) or by cp.async"}
      -> !transform.any_param
    %stages = transform.tune.knob<"stages"> = 2 from options = [1, 2, 3, 4, 5]
      {description = "stages of the shared-memory pipeline: 1 is CC'22's two-barrier form; cp.async pays with 3 or 4"}
      -> !transform.param<i64>
    %raster_group = transform.tune.knob<"raster_group"> = 1 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %min_blocks_per_sm = transform.tune.knob<"min_blocks_per_sm"> = 0 from options = [0, 1, 2, 3, 4]
      {description = "blocks that must fit on a multiprocessor, which bounds registers; 0 leaves registers to ptxas"}
      -> !transform.param<i64>
    %math = transform.tune.knob<"math"> = "fast" from options = ["fast", "libdevice"]
      {description = "fast: sigmoid and GELU are approximated where all results have 8 or 16 bits; libdevice: never"}
      -> !transform.any_param
    %target = transform.tune.knob<"target"> = "sm_80"
      from options = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // Tensors: tile C for the grid and the reduction for shared memory.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @prepare_operands failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"edges"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges"}} {
    }, {
      transform.include @prepare_edges failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @fuse_consumers failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.tune.alternatives<"approximate_math"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast' and approximates"}} {
    }, {
      transform.include @approximate_math failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.tune.alternatives<"divide_batch_index"> selected_region = 0
        attributes {knobs = {selected_region_attr = "batch_strides > 1 or read_batch_strides > 0"}} {
    }, {
      transform.include @divide_batch_index failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    // Tiles that extend beyond A, B and C are padded to whole ones. Those of a pair of products are padded too, by
    // nothing where they divide the problem.
    transform.tune.alternatives<"accumulators"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges or products == 2"}} {
      transform.include @stage_accumulators_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @stage_c_in_shared_memory failures(propagate) (%module, %block_m, %block_n, %block_k)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    }
    transform.tune.alternatives<"gather"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      transform.include @gather_products failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.tune.alternatives<"operands"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges or products == 2"}} {
      transform.include @stage_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @stage_operands_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"gather_copies"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      transform.include @gather_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // Memrefs: map tiles to the grid, copies to threads, products to warps.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    // cp.async issues the copies of a thread one by one, for which rows one pass apart are better.
    transform.tune.alternatives<"copies"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges or cyclic"}} {
      transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
    }
    transform.tune.alternatives<"cyclic_copies"> selected_region = 0
        attributes {knobs = {selected_region_attr = "cyclic and not has_edges"}} {
    }, {
      transform.include @map_copies_cyclically failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"masked_copies"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges"}} {
    }, {
      transform.include @map_masked_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.tune.alternatives<"consumer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges"}} {
      transform.include @map_consumer_to_warps failures(propagate) (%module, %warp_m, %warp_n)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    }, {
      transform.include @map_masked_consumer failures(propagate) (%module) : (!transform.any_op) -> ()
    }

    // Vectors: 16-byte copies, fragments of 16 x 16 x 16.
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()

    // Shared-memory layout and stages; accumulators in registers.
    transform.include @pad_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_consumer_to_lanes failures(propagate) (%module) : (!transform.any_op) -> ()

    // The kernel function.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @set_min_blocks_per_sm failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // WMMA instructions, and software pipelining of the k loop.
    transform.include @extend_integers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @load_bf16_as_f16 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @convert_to_wmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.tune.alternatives<"prefetch"> selected_region = 0
        attributes {knobs = {selected_region_attr = "prefetch == 'cp_async'"}} {
      // One tile ahead, in registers.
      transform.include @prefetch_to_registers failures(propagate) (%kernels) : (!transform.any_op) -> ()
      transform.include @hoist_prefetch failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }, {
      // `stages` - 1 tiles ahead, in shared memory.
      transform.include @convert_to_cp_async failures(propagate) (%kernels) : (!transform.any_op) -> ()
      transform.include @pipeline_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
      transform.include @rotate_loop failures(propagate) (%kernels) : (!transform.any_op) -> ()
      transform.include @interleave_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    transform.include @multiply_as_bf16 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.tune.alternatives<"masks"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_edges"}} {
    }, {
      transform.include @lower_masked_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }

    // Lowering to NVVM.
    transform.include @lower_transfers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @lower_fp8_casts failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.tune.alternatives<"flush_denormals"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast' and approximates"}} {
    }, {
      transform.include @flush_denormals failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
