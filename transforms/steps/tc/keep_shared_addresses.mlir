// Passes shared-memory addresses to TMA without casts to generic addresses and back.
//
// The destination of a TMA load is an address in the shared memory of the cluster, and tiles are in that of the block.
// The window of the former contains that of the latter, so that the address is the same. LLVM casts it to a generic
// address and back. ptxas then computes the upper half of the generic address too: in every k step, the thread that
// issues loads reads it from a special register (`S2UR` of `SR_SWINHI`) and moves both halves.
//
// Left out: the casts stay, and the producer thread takes more instructions in each k step.
//
// Source: PTX ISA, state spaces: the window of `.shared::cta` is contained in that of `.shared::cluster`.
//
// Before:
//   %target = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
//   nvvm.cp.async.bulk.tensor.shared.cluster.global %target, %A_map, %barrier, box[%k, %i] : !llvm.ptr<7>, !llvm.ptr
// After:
//   %number = llvm.ptrtoint %tile : !llvm.ptr<3> to i64
//   %target = llvm.inttoptr %number : i64 to !llvm.ptr<7>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @keep_shared_addresses(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.keep_shared_addresses"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
