// Specializes warps: a producer warpgroup issues the TMA loads, and consumer warpgroups issue the products.
//
// A consumer thread that also issues loads stalls its warpgroup while it waits for a free stage. A producer warpgroup
// takes over that wait and runs ahead by up to `stages` k steps, also into the next tile while the consumers run the
// epilogue of the current one. It needs few registers and leaves the rest to the consumers' accumulators
// (`setmaxnreg`).
//
// Both roles are copies of the same loops: the producer keeps the ops that issue loads, the consumers all others.
//
// Left out: a consumer thread issues the loads of each k step.
//
// Source: Ozen, "Hopper GEMM in MLIR", the warp-specialized kernel.
//
// Before:
//   scf.for %k { if %leader { wait empty; loads }; wait full; product; release }
// After:
//   scf.if %is_producer {
//     nvvm.setmaxregister decrease 40
//     scf.if %leader { scf.for %k { wait empty; loads } }
//   } else {
//     nvvm.setmaxregister increase 232
//     scf.for %k { wait full; product; release }
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @specialize_warps(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
        {condition = "consumers < 3 or accumulator_registers <= 100",
         message = "three consumer warpgroups require accumulator_registers to be at most 100"},
        {condition = "is_alone or block_n * acc_bits // 64 + 26 <= starting_registers",
         message = "min_blocks_per_sm above 1 requires the accumulators of a wgmma to fit in starting_registers"}
      ]} {
    "tc.specialize_warps"(%module) {producer_registers = 40 : i64, consumer_registers = 232 : i64,
      knobs = {producer_registers = "producer_registers", consumer_registers = "consumer_registers"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
