// Lowers the remaining NVVM operations to inline PTX and passes TMA descriptors as grid constants.
//
// LLVM has no intrinsics for some instructions: waits on mbarriers become loops of `mbarrier.try_wait`, and `wgmma` and
// `setmaxnreg` reach ptxas as written. Descriptors become `__grid_constant__` parameters, by attributes that only a
// lowered kernel can carry.
//
// Before:
//   nvvm.mbarrier.try_wait.parity %barrier, %parity, %ticks
// After:
//   llvm.inline_asm has_side_effects "{ ... mbarrier.try_wait.parity.shared.b64 ... }", "r,r,r" %barrier, ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_to_inline_ptx(%module: !transform.any_op {transform.readonly}) {
    %kernels = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    %0 = transform.apply_registered_pass "convert-nvvm-to-llvm" to %kernels : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "canonicalize" to %0 : (!transform.any_op) -> !transform.any_op
    %2 = transform.apply_registered_pass "cse" to %1 : (!transform.any_op) -> !transform.any_op
    // After the lowering of functions, which drops one of the two attributes and refuses the other.
    "tc.mark_grid_constants"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
