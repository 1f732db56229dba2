// Schedules two consumer warpgroups in ping-pong: one runs its epilogue during the main loop of the other.
//
// Cooperative consumers of one tile finish its main loop together, and the tensor cores idle during their epilogue. In
// the ping-pong schedule the warpgroups compute alternate tiles, and the epilogue of one overlaps the main loop of the
// other. Each warpgroup holds the accumulator of a whole tile, so that tiles are smaller and each product needs more
// bytes from shared memory and the L2 cache. The schedule is faster for small problems, which have few tiles, and in
// which the epilogue takes a larger share of the time.
//
// Named barriers order the main loops of the two warpgroups. The phase parity of the mbarriers cannot order them: it
// has the same value again after two passes over the stages.
//
// Before:
//   scf.for %tile = %block to %tiles step %blocks { main loop; epilogue }
// After:
//   scf.for %tile = %block + %warpgroup * %blocks to %tiles step 2 * %blocks {
//     nvvm.barrier id = %own_barrier number_of_threads = 256
//     main loop
//     nvvm.barrier.arrive id = %other_barrier number_of_threads = 256
//     epilogue
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @pingpong_consumers(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["make_persistent", "specialize_warps"], requires = [
        {condition = "persistent_blocks > 0",
         message = "persistent_blocks must be above 0, so that each block computes several tiles"},
        {condition = "stages > 1",
         message = "stages must be above 1: each consumer begins with a different stage"}
      ]} {
    "tc.pingpong_consumers"(%module) {stages = 4 : i64, knobs = {stages = "stages"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
