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
         message = "with stagger above 0, consumers must be cooperative, and two or more"},
        {condition = "stagger < stages",
         message = "stagger must be less than stages: a stage that a consumer waits with cannot be loaded again"},
        {condition = "stages <= k_steps",
         message = "with stagger above 0, k must have as many steps of block_k as stages or more"},
        {condition = "split_k == 1 and tile_scheduler == 'data_parallel'",
         message = "with stagger above 0, blocks must compute whole tiles: split_k = 1, no stream-K tail"},
        {condition = "parts == 1",
         message = "with stagger above 0, operands of f32 must be multiplied as tf32"}
      ]} {
    "tc.stagger_consumers"(%module) {steps = 2 : i64, stages = 4 : i64, knobs = {steps = "stagger", stages = "stages"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
