// Compiles a matmul to a multistage tensor-core kernel with `ldmatrix` and `mma.sync`, for sm_80 and later.
//
// The pipeline removes the limits of WMMA: fragments are registers with a documented layout, shared memory is swizzled
// instead of padded, `cp.async` copies run several stages ahead of the products, fragments are loaded one k sub-step
// ahead of their products, also across the barrier, and blocks are rasterized for the L2 cache.
//
// It takes f16, bf16 and fp8 with f32 accumulators, f16 with f16 accumulators, f32 by three products of tf32 or by one,
// f64, and i8 with i32 accumulators; A and B are each row- or column-major. Elementwise ops on the product, or on a
// pair of products of one A, are computed in registers. It leaves a `gpu.module` with the kernel in the NVVM dialect,
// and a host function that launches it.
//
// Every step is a file in steps/; most are shared with `wmma`. Stepladder supplies the declarations of the included
// steps.
//
// How to read it: the attribute `derived` names expressions over knobs, which the steps use in their requirements. Then
// come the knobs (`transform.tune.knob`), and the steps in order (`transform.include`). A step that runs only for some
// knobs or payloads is in a `transform.tune.alternatives`: the expression `selected_region_attr` gives the number, from
// 0, of the region that runs, and an empty region runs nothing.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @mma_sync(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        // What this pipeline supports, for the requirements of the steps: elementwise ops on the product, such as the
        // rounding to C's type, which are computed on fragments; other forms of a matmul; operands that elementwise ops
        // compute; pairs of products; parts of buffers; operands of a batch with several strides.
        rounds_c = "1", normalizes = "1", prepares = "1", takes_pairs = "1", takes_windows = "1",
        reads_strided_batches = "1",
        copies_asynchronously = "not through_registers",
        // Where tiles do not divide the problem, `prepare_edges` runs, and records its sizes.
        whole_tiles = "not has_edges",
        has_edges = "is_sized and (m % block_m != 0 or n % block_n != 0 or k % block_k != 0)",
        // One warp of 32 threads per warp tile.
        threads = "block_m / warp_m * (block_n / warp_n) * 32",
        // The type that upstream's conversion is given as another of the same width; see `convert_to_mma_sync`.
        half_type = "a_type if a_bits == 16 or a_type in ['f8E4M3FN', 'f8E5M2'] else 'f16'",
        stand_in = "'i8' if a_type in ['f8E4M3FN', 'f8E5M2'] else 'f16'",
        // A thread copies `run` elements, 16 bytes. a_rows and b_rows are the vectors of a thread that
        // `vectorize_copies` unrolls; cyclic mapping unrolls them itself. a_width and b_width are the row lengths of
        // the tiles as stored.
        run = "128 / a_bits",
        a_rows = "1 if map_copies_cyclically or has_edges else block_m * block_k / (threads * run)",
        b_rows = "1 if map_copies_cyclically or has_edges else block_k * block_n / (threads * run)",
        a_width = "block_k if a_layout == 'row' else block_m",
        b_width = "block_n if b_layout == 'row' else block_k",
        // Rows of a pass of the copies: eight at least, so that a thread has one swizzle phase.
        a_pass = "threads * run / a_width if threads * run >= 8 * a_width else 8",
        b_pass = "threads * run / b_width if threads * run >= 8 * b_width else 8",
        // At the edges a vector is the widest that divides the rows of a matrix, of a_length or b_length elements.
        a_length = "k if a_layout == 'row' else m", b_length = "n if b_layout == 'row' else k",
        a_halves = "1 if a_length % run == 0 else 2 if a_length % (run // 2) == 0 else a_quarters",
        a_quarters = "4 if a_length % (run // 4) == 0 else 8 if a_length % (run // 8) == 0 else 16",
        a_run = "run // a_halves if has_edges else run",
        b_halves = "1 if b_length % run == 0 else 2 if b_length % (run // 2) == 0 else b_quarters",
        b_quarters = "4 if b_length % (run // 4) == 0 else 8 if b_length % (run // 8) == 0 else 16",
        b_run = "run // b_halves if has_edges else run",
        is_narrow = "has_edges and (a_run < run or b_run < run or is_i8)",
        // cp.async copies 4 bytes at least. Of fp8, `convert_to_cp_async` converts copies of 16 bytes only, of i8 only
        // unmasked ones: other vectors go through registers.
        least_run = "run if a_bits == 8 else 32 // a_bits",
        through_registers = "is_narrow and (is_i8 or a_run < least_run or b_run < least_run)",
        // Registers of a thread for the vectors of one step, where they go through registers.
        a_registers = "block_m * block_k // (threads * a_run) * ((a_run * a_bits + 31) // 32)",
        b_registers = "products * (block_k * block_n // (threads * b_run)) * ((b_run * a_bits + 31) // 32)",
        // Sums of fp8 leave the accumulators of the tensor core after each instruction; see `promote_accumulators`. On
        // sm_90, `mma.sync` multiplies fp8 as f16, with sums of f32.
        promotes = "is_fp8 and target == 'sm_89' and not fast_accum",
        promoted_columns = "8", holds_two = "1", consumer_registers = "255", k_steps = "(k + block_k - 1) // block_k",
        // n and k of one tensor-core instruction; m is 16.
        fragment_n = "8", fragment_k = "256 / a_bits",
        // Swizzled, not padded: the tiles of A and B, or of A and both B of a pair, for each stage.
        shared_bytes = "stages * (block_m * block_k + products * block_k * block_n) * a_bits / 8",
        // 32-bit registers per thread for the accumulator: the bits of a warp tile over 32 lanes of 32 bits; twice for
        // 3xTF32, whose three products are summed from zero before they are added.
        accumulator_registers =
          "products * warp_m * warp_n * acc_bits / 1024 * (2 if a_bits == 32 and not allow_tf32 else 1)"
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
    %stages = transform.tune.knob<"stages"> = 3 from options = [2, 3, 4, 5]
      {description = "stages of the shared-memory pipeline; copies run stages - 1 tiles ahead"} -> !transform.param<i64>
    %raster_group = transform.tune.knob<"raster_group"> = 8 from options = [1, 2, 4, 8, 16, 32]
      {description = "rows of tiles in a rasterization group, for reuse in the L2 cache; 1 is row-major order"}
      -> !transform.param<i64>
    %min_blocks_per_sm = transform.tune.knob<"min_blocks_per_sm"> = 0 from options = [0, 1, 2, 3, 4]
      {description = "blocks that must fit on a multiprocessor, which bounds registers; 0 leaves registers to ptxas"}
      -> !transform.param<i64>
    %allow_tf32 = transform.tune.knob<"allow_tf32"> = false from options = [false, true]
      {description = "multiply f32 as tf32, which keeps 10 of 23 bits of the fraction; else by three products of tf32"}
      -> !transform.any_param
    %keep_infinities = transform.tune.knob<"keep_infinities"> = true from options = [true, false]
      {description = "f32 by three products of tf32: tiles with a NaN are computed again; else infinities become NaN"}
      -> !transform.any_param
    %fast_accum = transform.tune.knob<"fast_accum"> = true from options = [true, false]
      {description = "sm_89: sum products of fp8 in the tensor core, in about 14 bits; else by f32 additions"}
      -> !transform.any_param
    %math = transform.tune.knob<"math"> = "fast" from options = ["fast", "libdevice"]
      {description = "fast: sigmoid and GELU are approximated where all results have 8 or 16 bits; libdevice: never"}
      -> !transform.any_param
    %target = transform.tune.knob<"target"> = "sm_80" from options = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
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
    // `map_copies_cyclically` is an optimization: without it the other mapping runs.
    transform.tune.alternatives<"copies"> selected_region = 1
        attributes {knobs = {selected_region_attr = "has_edges or map_copies_cyclically"}} {
      transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
    }
    transform.tune.alternatives<"cyclic_copies"> selected_region = 1
        attributes {knobs = {selected_region_attr = "map_copies_cyclically and not has_edges"}} {
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

    // Vectors: 16-byte copies, fragments of 16 x 8 x 16 (f16).
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()

    // Shared-memory stages, accumulators in registers, and fragments of mma.sync.
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_mma_sync failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @merge_ldmatrix failures(propagate) (%module) : (!transform.any_op) -> ()

    // Copies by cp.async, into swizzled tiles without bank conflicts.
    transform.tune.alternatives<"copy"> selected_region = 0
        attributes {knobs = {selected_region_attr = "through_registers"}} {
      transform.include @convert_to_cp_async failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
    }
    transform.include @swizzle_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // The kernel function.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @set_min_blocks_per_sm failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // Software pipelining of the main loop.
    transform.tune.alternatives<"prefetch"> selected_region = 0
        attributes {knobs = {selected_region_attr = "through_registers"}} {
      transform.include @pipeline_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }, {
      transform.include @prefetch_to_registers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    // Only copies of 16 bytes bypass L1.
    transform.tune.alternatives<"bypass"> selected_region = 0
        attributes {knobs = {selected_region_attr = "is_narrow"}} {
      transform.include @bypass_l1 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }, {
    }
    transform.tune.alternatives<"order"> selected_region = 0
        attributes {knobs = {selected_region_attr = "through_registers"}} {
      transform.include @rotate_loop failures(propagate) (%kernels) : (!transform.any_op) -> ()
      transform.include @interleave_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }, {
      transform.include @hoist_prefetch failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"infinities"> selected_region = 0
        attributes {knobs = {selected_region_attr = "is_f32 and keep_infinities and not allow_tf32"}} {
    }, {
      transform.include @recompute_nan_tiles failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    transform.tune.alternatives<"promote_accumulators"> selected_region = 0
        attributes {knobs = {selected_region_attr = "promotes"}} {
    }, {
      transform.include @promote_accumulators failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    transform.include @multiply_as_3xtf32 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @load_fragments_as_integers failures(propagate) (%kernels) : (!transform.any_op) -> ()
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
