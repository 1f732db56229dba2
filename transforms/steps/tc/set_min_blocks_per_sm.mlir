// Sets the least number of blocks that must fit on a multiprocessor (`.minnctapersm`).
//
// ptxas gives a thread up to 255 registers, so that registers often limit the number of resident blocks. The second
// argument of CUDA's `__launch_bounds__` bounds them: with n blocks of t threads, a thread gets at most 65536 / (n * t)
// registers. More resident blocks hide more latency; a bound below the registers of the accumulator and the fragments
// causes spills. With min_blocks_per_sm = 0, ptxas chooses.
//
// On `wgmma`, `lower_to_wgmma` sets 1: the occupancy is one block per multiprocessor, which uses most of the shared
// memory for stages. With min_blocks_per_sm = 2, the blocks of the next kernel start while those of the previous one
// end, which is faster for products of few rows (`prefetch_to_l2`).
//
// Upstream has no such op; `tc.set_min_blocks_per_sm` also checks that the kernel has a known block size, without which
// ptxas ignores the number.
//
// Left out: ptxas chooses (`left_out`).
//
// Before:
//   gpu.func @matmul_kernel(...) kernel attributes {known_block_size = array<i32: 128, 1, 1>, ...}
// After, with min_blocks_per_sm = 3:
//   gpu.func @matmul_kernel(...) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 3 : i32}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @set_min_blocks_per_sm(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {min_blocks_per_sm = 0 : i64}, requires = [
        {condition = "min_blocks_per_sm * threads <= max_threads_per_sm",
         message = "min_blocks_per_sm * threads must be at most max_threads_per_sm, the threads of a multiprocessor"}
      ]} {
    %kernels = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    "tc.set_min_blocks_per_sm"(%kernels) {blocks = 0 : i64, knobs = {blocks = "min_blocks_per_sm"}}
      : (!transform.any_op) -> ()
    transform.yield
  }
}
