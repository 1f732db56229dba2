// Lowers warpgroup products to `wgmma.mma_async` instructions and accumulators to registers.
//
// A product of 64 x n x 64 f16 is four instructions of k = 16. Each instruction reads its operands through 64-bit
// matrix descriptors: the address in shared memory, the swizzle mode, and the strides between groups of eight rows.
// Upstream's lowering supports row-major operands in tiles of 64 elements; `tc.lower_warpgroup_mma` supports every
// layout that the earlier steps produce.
//
// Before:
//   %d = nvgpu.warpgroup.mma %a, %b, %c {transposeB} : ... -> <fragmented = vector<64x256xf32>>
// After:
//   nvvm.wgmma.fence.aligned
//   %0 = nvvm.wgmma.mma_async %desc_a, %desc_b, %regs, <m = 64, n = 256, k = 16>, ... : !llvm.struct<(f32, ..., f32)>
//   ...
//   nvvm.wgmma.commit.group.sync.aligned
//   nvvm.wgmma.wait.group.sync.aligned 1

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @lower_to_wgmma(%module: !transform.any_op {transform.readonly}) {
    "tc.lower_warpgroup_mma"(%module) : (!transform.any_op) -> ()

    // `.minnctapersm 1`: ptxas ignores setmaxnreg without a bound on the registers of a block. With one block per
    // multiprocessor, a block gets the whole register file.
    %kernels = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %one = transform.param.constant 1 : i32 -> !transform.any_param
    transform.annotate %kernels "nvvm.minctasm" = %one : !transform.any_op, !transform.any_param

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernel) : (!transform.any_op) -> ()
    transform.yield
  }
}
