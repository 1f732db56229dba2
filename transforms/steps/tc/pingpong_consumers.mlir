// Lets two consumer warpgroups take tiles in turn: one stores while the other multiplies (ping-pong).
//
// Consumers that share a tile end its main loop together, and the tensor cores idle while both store. Two that take
// tiles in turn hide one's epilogue behind the other's main loop. The price is a smaller tile, since each holds one of
// its own, and so more bytes from shared memory and from the L2 cache for each product: it pays for small problems,
// where there are few tiles and epilogues weigh more.
//
// A named barrier hands the tensor cores over. A parity of the ring's barriers could not: it repeats every second
// round.
//
// Before:
//   scf.for %tile = %block to %tiles step %blocks { main loop; store }
// After:
//   scf.for %tile = %block + %warpgroup * %blocks to %tiles step 2 * %blocks {
//     nvvm.barrier id = %own_turn number_of_threads = 256
//     main loop
//     nvvm.barrier.arrive id = %turn_of_the_other number_of_threads = 256
//     store
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pingpong_consumers(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["make_persistent", "specialize_warps"], requires = [
        {condition = "persistent_blocks > 0", message = "persistent_blocks must be above 0, so that each block takes several tiles"}
      ]} {
    "tc.pingpong_consumers"(%module) {stages = 4 : i64, knobs = {stages = "stages"}} : (!transform.any_op) -> ()

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
