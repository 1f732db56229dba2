// Pipelines `wgmma`: a warpgroup issues the product of a k step before the previous one completes.
//
// If a warpgroup waits for each product before it issues the next one, the tensor cores are idle between the two. With
// one product in flight they stay busy: a k step waits for the product of the previous step and then releases the stage
// which that product has read.
//
// Left out: a warpgroup waits for each product before it issues the next one.
//
// Source: Ozen, "Hopper GEMM in MLIR", where a wait allows one group of products in flight.
//
// Before:
//   scf.for %k iter_args(%stage, %phase, %acc) {
//     %next = nvgpu.warpgroup.mma %a, %b, %acc {waitGroup = 0}
//     nvgpu.mbarrier.arrive %empty[%stage]
// After:
//   scf.for %k iter_args(%stage, %phase, %acc, %previous) {
//     %next = nvgpu.warpgroup.mma %a, %b, %acc {waitGroup = 1}
//     scf.if %k != 0 { nvgpu.mbarrier.arrive %empty[%previous] }
//   }
//   nvvm.wgmma.wait.group.sync.aligned 0
//   nvgpu.mbarrier.arrive %empty[%last]

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @pipeline_wgmma(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.pipeline_wgmma"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
