// Compiles a matmul to a tensor-core kernel with WMMA in upstream transform ops only. One command of a stock mlir-opt
// runs the whole pipeline:
//
//   mlir-opt payload.mlir \
//     --transform-preload-library=transform-library-paths=transforms/steps,transforms/wmma_upstream.mlir \
//     --transform-interpreter=entry-point=wmma_upstream
//
// `wmma` adds what needs ops of the tc extension: payloads in other forms than the normal form, tiles that do not
// divide the problem, elementwise ops on the product, bf16 and i8, rasterization, `cp.async` stages, prefetch loads
// issued before the computation, and more than 48 KB of shared memory.
//
// mlir-opt verifies each file before it merges the library, so that this file declares the steps that it includes. Only
// Stepladder defines the tc ops of the other pipelines, and it inserts the declarations when it parses the file.

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
        // Tiles divide the problem, and C has the type of the accumulator: no edge code, no conversion in the epilogue.
        whole_tiles = "1", rounds_c = "0", normalizes = "0", prepares = "0",
        // The sign of i8 fragments takes a tc op.
        extend_integers = "0", load_bf16_as_f16 = "0",
        // One warp of 32 threads per warp tile.
        threads = "block_m / warp_m * (block_n / warp_n) * 32",
        // A thread copies `run` elements, 16 bytes, of a row; rows of the stored tiles have a_width and b_width
        // elements. a_rows and b_rows are the vectors of a thread that `vectorize_copies` unrolls.
        a_rows = "block_m * block_k / (threads * run)", b_rows = "block_k * block_n / (threads * run)",
        run = "8", a_width = "block_k if a_layout == 'row' else block_m",
        b_width = "block_n if b_layout == 'row' else block_k",
        // n and k of one tensor-core instruction; m is 16.
        fragment_n = "16", fragment_k = "16",
        // Two bytes an f16, in rows padded against bank conflicts.
        a_tile = "block_m * block_k / a_width * (a_width + padding)",
        b_tile = "block_k * block_n / b_width * (b_width + padding)",
        shared_bytes = "stages * 2 * (a_tile + b_tile)",
        // 32-bit registers per thread for the accumulator: the bits of a warp tile over 32 lanes of 32 bits.
        accumulator_registers = "warp_m * warp_n * c_bits / 1024"
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
      {description = "elements added to each row of a shared tile"} -> !transform.param<i64>
    %stages = transform.tune.knob<"stages"> = 2 from options = [1, 2]
      {description = "stages of the shared-memory pipeline: 1 is CC'22's two-barrier form"} -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "sm_80"
      from options = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param

    // Tensors: tile C for the grid and the reduction for shared memory.
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @tile_k failures(propagate) (%module, %block_k)
      : (!transform.any_op, !transform.param<i64>) -> ()
    transform.include @stage_in_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()

    // Memrefs: map tiles to the grid, copies to threads, products to warps.
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_copies_to_threads failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_matmul_to_warps failures(propagate) (%module, %warp_m, %warp_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Vectors: 16-byte copies, fragments of 16 x 16 x 16.
    transform.include @vectorize_copies failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_fragments failures(propagate) (%module) : (!transform.any_op) -> ()

    // Shared-memory layout and stages; accumulators in registers.
    transform.include @pad_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @multi_buffer failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()

    // The kernel function.
    transform.include @allocate_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op

    // WMMA instructions, and software pipelining of the k loop through registers.
    transform.include @convert_to_wmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @prefetch_to_registers failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // Lowering to NVVM.
    transform.include @lower_transfers failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield
  }
}
