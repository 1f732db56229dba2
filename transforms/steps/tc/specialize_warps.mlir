// Divides the roles: one warpgroup issues loads and does nothing else, the others multiply.
//
// A thread that issues loads between its products holds its warpgroup up: it waits for a slot while the tensor cores
// could work. A producer of its own waits instead of them, and runs ahead as far as the ring reaches, into the next
// tile too while the consumers store this one. It needs few registers and gives the rest back, from which the consumers
// take what their sums need (`setmaxnreg`).
//
// Both roles are copies of the same loops; the producer keeps what issues loads, the consumers all else.
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
  transform.named_sequence @specialize_warps(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
        {condition = "consumers < 3 or accumulator_registers <= 100",
         message = "with three consumer warpgroups, of 128 registers a thread, accumulators must take at most 100 (accumulator_registers)"}
      ]} {
    "tc.specialize_warps"(%module) {producer_registers = 40 : i64, consumer_registers = 232 : i64,
      knobs = {producer_registers = "producer_registers", consumer_registers = "consumer_registers"}}
      : (!transform.any_op) -> ()

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
