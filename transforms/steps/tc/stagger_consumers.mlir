// Lets cooperative consumer warpgroups end a tile one after the other, so that their epilogues do not coincide.
//
// Consumers that share a tile finish its main loop together, and the tensor cores idle while all of them run the
// epilogue. The order in which their MMAs are issued is free: with this step, a warpgroup delays its last k steps until
// the previous warpgroup has issued all of its own. The previous warpgroup runs its epilogue while the tensor cores
// compute the delayed steps, and begins the next tile while the other one is in its epilogue. No additional shared
// memory is needed, since the tiles of the last k steps are loaded in any case, but stages are released later. A
// warpgroup can be ahead by fewer steps than the pipeline has stages.
//
// Unlike ping-pong, warpgroups share tiles of B, so that tiles are as large as those of cooperative consumers.
//
// Before:
//   scf.for %k = 0 to %K step 64 { wait full; product; release }
//   epilogue
// After, with stagger = 2:
//   scf.for %k = 0 to %K step 64 {
//     scf.if %k == %K - 128 and %warpgroup > 0 { nvvm.barrier id = 3 + %warpgroup number_of_threads = 256 }
//     wait full; product; release
//   }
//   scf.if %warpgroup < %last { nvvm.barrier.arrive id = 4 + %warpgroup number_of_threads = 256 }
//   epilogue

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stagger_consumers(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["specialize_warps"], requires = [
        {condition = "schedule == 'cooperative' and consumer_warpgroups > 1",
         message = "stagger above 0 requires schedule = cooperative and at least two consumer_warpgroups"},
        {condition = "stagger < stages",
         message = "stagger must be less than stages: a stage that a delayed consumer has yet to read is not refilled"},
        {condition = "stages <= k_steps",
         message = "stagger above 0 requires at least as many k steps (k_steps) as stages"},
        {condition = "split_k == 1 and tile_scheduler == 'data_parallel'",
         message = "stagger above 0 requires split_k = 1 and tile_scheduler = data_parallel"},
        {condition = "parts == 1",
         message = "stagger above 0 requires allow_tf32 = true for operands of f32"}
      ]} {
    "tc.stagger_consumers"(%module) {steps = 2 : i64, stages = 4 : i64, knobs = {steps = "stagger", stages = "stages"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
