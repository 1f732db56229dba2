// Compiles a matmul to a kernel for Intel GPUs as a XeTile program: tiles of work-groups, then of subgroups, then of
// matrix instructions.
//
// The pipeline takes C = AB + C or C = AB, f16 or bf16 with sums in f32, for matrices whose rows are a multiple of 16
// bytes and at least 64 bytes; tiles need not divide them. docs/xetile.md describes the programming model, which is
// that of the XeTile RFC. The last IR is a kernel of the LLVM dialect, from which LLVM's back end makes SPIR-V.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @xetile(%module: !transform.any_op {transform.consumed})
      attributes {derived = {
        // Loads beyond the matrices are padded. The rounding to C's type, and other elementwise ops, are refused.
        whole_tiles = "0", prepares = "0",
        subgroups = "block_m / sg_m * (block_n / sg_n)", threads = "subgroups * 16"
      }} {
    %block_m = transform.tune.knob<"block_m"> = 256 from options = [32, 64, 128, 256, 512]
      {description = "rows of the tile of C that a work-group computes"} -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 256 from options = [32, 64, 128, 256, 512]
      {description = "columns of the tile of C that a work-group computes"} -> !transform.param<i64>
    %block_k = transform.tune.knob<"block_k"> = 32 from options = [16, 32, 64]
      {description = "depth of one step of the k loop"} -> !transform.param<i64>
    %sg_m = transform.tune.knob<"sg_m"> = 32 from options = [8, 16, 32, 64]
      {description = "rows of the tile of C that a subgroup computes"} -> !transform.param<i64>
    %sg_n = transform.tune.knob<"sg_n"> = 64 from options = [16, 32, 64]
      {description = "columns of the tile of C that a subgroup computes"} -> !transform.param<i64>
    %distance = transform.tune.knob<"distance"> = 3 from options = [1, 2, 3, 4]
      {description = "steps of the k loop between the prefetch of a tile and its load"} -> !transform.param<i64>
    %target = transform.tune.knob<"target"> = "bmg" from options = ["pvc", "bmg"]
      {description = "Intel GPU that the kernel is for"} -> !transform.any_param

    // Tiles of work-groups.
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @convert_to_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @prefetch_tiles failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @launch_subgroups failures(propagate) (%module) : (!transform.any_op) -> ()

    // Tiles of subgroups.
    transform.include @distribute_to_subgroups failures(propagate) (%module) : (!transform.any_op) -> ()

    // XeGPU, of subgroups.
    transform.include @convert_to_xegpu failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_subgroups failures(propagate) (%module, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.include @block_to_instructions failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @distribute_to_lanes failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @transpose_by_words failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @access_shared_memory failures(propagate) (%kernels) : (!transform.any_op) -> ()

    // XeVM, and calls of OpenCL C built-ins.
    transform.include @lower_to_xevm failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.include @lower_xevm_to_llvm failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
