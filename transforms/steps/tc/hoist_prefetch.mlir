// Moves the loads of the next tile in front of the computation that is to hide them.
//
// `prefetch_to_registers` leaves them at the end of the loop body. With one buffer a barrier stands before them there, which
// neither LLVM nor ptxas moves a load across: the latency would be paid in full. Here they move up to the first read of
// shared memory, right behind the barrier that ends the copies. A and B are only read by the kernel, so nothing can
// come between.
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
