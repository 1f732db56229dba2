// Issues the product of the next step of k before the last one is done.
//
// A warpgroup that waits for each of its products leaves the tensor cores idle from its end to the start of the next.
// With one product in flight they always have work: a step waits for the product before its own, and releases the slot
// that that one has read.
//
// Source: Ozen, "Hopper GEMM in MLIR", where a wait leaves one group of products running.
//
// Before:
//   scf.for %k iter_args(%slot, %parity, %acc) {
//     %next = nvgpu.warpgroup.mma %a, %b, %acc {waitGroup = 0}
//     nvgpu.mbarrier.arrive %empty[%slot]
// After:
//   scf.for %k iter_args(%slot, %parity, %acc, %previous) {
//     %next = nvgpu.warpgroup.mma %a, %b, %acc {waitGroup = 1}
//     scf.if %k != 0 { nvgpu.mbarrier.arrive %empty[%previous] }
//   }
//   nvvm.wgmma.wait.group.sync.aligned 0
//   nvgpu.mbarrier.arrive %empty[%last]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pipeline_wgmma(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.pipeline_wgmma"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
