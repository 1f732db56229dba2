// Writes instructions that LLVM has no intrinsic for as inline PTX, and parameters by value as such.
//
// The last of the lowering: waits on barriers are loops of `mbarrier.try_wait`, `wgmma` and `setmaxnreg` go to ptxas as
// they are written. TMA descriptors become parameters by value that are constant for the grid, which can only be said
// of a lowered kernel.
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
    "tc.mark_grid_constants"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
