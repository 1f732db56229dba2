// Hoists the global loads of the next tile above the computation that hides their latency.
//
// `prefetch_to_registers` leaves the loads at the end of the loop body. With one shared-memory stage they follow a
// barrier, across which neither LLVM nor ptxas moves loads, so that the full latency is exposed. This step moves them
// up to the first read of shared memory, directly after the barrier that follows the copies. The kernel only reads A
// and B, so that the move crosses no conflicting write.
//
// Left out: the loads stay at the end of the loop body.
//
// Source: CC'22, section 3.7 and listing 2 (loads of iteration i + 1, compute, barrier, stores). Upstream has no op
// that moves an op within a block.
//
// Before:
//   scf.for ... { store tile i; gpu.barrier; compute tile i; gpu.barrier; %next = vector.transfer_read %A[...] }
// After:
//   scf.for ... { store tile i; gpu.barrier; %next = vector.transfer_read %A[...]; compute tile i; gpu.barrier }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @hoist_prefetch(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.hoist_prefetch"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
