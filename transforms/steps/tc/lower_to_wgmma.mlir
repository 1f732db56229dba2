// Writes the products of warpgroups as `wgmma` instructions, and accumulators as registers.
//
// A product of 64 x n x 64 f16 is four instructions of k = 16, each reading its operands by a descriptor of 64 bits:
// the address in shared memory, how its rows are swizzled, and the steps between groups of eight rows. Upstream's
// lowering covers row-major operands in tiles of 64 elements; `tc.lower_warpgroup_mma` covers all that the earlier
// steps make.
//
// One block a multiprocessor is promised (`nvvm.minctasm`), without which registers cannot be divided between the
// roles.
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
  transform.named_sequence @lower_to_wgmma(%module: !transform.any_op {transform.readonly}) {
    "tc.lower_warpgroup_mma"(%module) : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %one = transform.param.constant 1 : i32 -> !transform.any_param
    transform.annotate %kernels "nvvm.minctasm" = %one : !transform.any_op, !transform.any_param

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %kernel {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %kernel : !transform.any_op
    transform.yield
  }
}
