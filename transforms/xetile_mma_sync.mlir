// Compiles a XeTile program to a kernel for NVIDIA GPUs: tiles of work-groups become copies to shared memory and
// products of `mma.sync`.
//
// A matmul is written as tiles first, as in the pipeline `xetile`; a XeTile program starts with its own, at
// `stage_tiles_in_shared_memory`. From there on the steps are those of `mma_sync`: cp.async, swizzled shared memory,
// stages, fragments. The pipeline takes products of matrices that tiles divide; docs/xetile.md lists what it refuses.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @xetile_mma_sync(%module: !transform.any_op {transform.consumed})
      attributes {program_step = "stage_tiles_in_shared_memory", program_knobs = {
        // A block computes a tile of the program, or a part of a larger one. Tiles of 256 x 128 with deeper k steps and
        // more stages are faster if there are many of them and shared memory has room.
        block_m = "256 if large and tile_m % 256 == 0 else 128 if tile_m % 128 == 0 else tile_m if tile_m % 64 else 64",
        block_n = "128 if tile_n % 128 == 0 else 64 if tile_n % 64 == 0 else tile_n",
        block_k = "64 if large and block_m == 256 else 32 if tile_k % 32 == 0 else tile_k",
        warp_m = "64 if block_m % 128 == 0 else 32 if block_m % 32 == 0 else block_m",
        warp_n = "64 if block_n == 128 else 32 if block_n % 32 == 0 else block_n",
        stages = "4 if large and block_m == 256 else 3"
      }, derived = {
        // Tiles divide the problem: no edge code. The rounding to C's type, and other elementwise ops, are refused.
        large = "m * n >= 2048 * 2048 and k % 64 == 0 and a_bits == 16 and shared_memory_limit >= 196608",
        whole_tiles = "1", has_edges = "0", prepares = "0",
        // A subgroup of a XeTile program is a warp.
        sg_m = "warp_m", sg_n = "warp_n", subgroups = "block_m / warp_m * (block_n / warp_n)",
        // Steps that need `stage_in_shared_memory` may run: `stage_tiles_in_shared_memory` takes its place.
        stage_in_shared_memory = "1",
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
        is_narrow = "0", through_registers = "0",
        // n and k of one tensor-core instruction; m is 16.
        fragment_n = "8", fragment_k = "256 / a_bits",
        // Swizzled, not padded: the tiles of A and B, for each stage.
        shared_bytes = "stages * (block_m * block_k + block_k * block_n) * a_bits / 8",
        // 32-bit registers per thread for the accumulator: the bits of a warp tile over 32 lanes of 32 bits.
        accumulator_registers = "warp_m * warp_n * acc_bits / 1024"
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
    %target = transform.tune.knob<"target"> = "sm_80" from options = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // XeTile at work-group level. A program of tiles enters at `stage_tiles_in_shared_memory`.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @stage_tiles_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Memrefs: copies to threads, products to warps.
    transform.include @rasterize_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    // `map_copies_cyclically` is an optimization: without it the other mapping runs.
    transform.tune.alternatives<"copies"> selected_region = 1
        attributes {knobs = {selected_region_attr = "map_copies_cyclically"}} {
      transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    }, {
      transform.include @map_copies_cyclically failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @map_consumer_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Vectors: 16-byte copies, fragments of 16 x 8 x 16 (f16).
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()

    // Shared-memory stages, accumulators in registers, and fragments of mma.sync.
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_mma_sync failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @merge_ldmatrix failures(propagate) (%module) : (!transform.any_op) -> ()

    // Copies by cp.async, into swizzled tiles without bank conflicts.
    transform.include @convert_to_cp_async failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @swizzle_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // The kernel function.
    transform.include @pack_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @set_min_blocks_per_sm failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // Software pipelining of the main loop.
    transform.include @pipeline_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @bypass_l1 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @rotate_loop failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @interleave_copies failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.tune.alternatives<"infinities"> selected_region = 0
        attributes {knobs = {selected_region_attr = "is_f32 and keep_infinities and not allow_tf32"}} {
    }, {
      transform.include @recompute_nan_tiles failures(propagate) (%kernels) : (!transform.any_op) -> ()
    }
    transform.include @multiply_as_3xtf32 failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @load_fragments_as_integers failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // Lowering to NVVM.
    transform.include @lower_transfers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield
  }
}
