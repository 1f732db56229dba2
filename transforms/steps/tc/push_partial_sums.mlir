// Sends partial sums of split-K to the block that reduces them, through the distributed shared memory of a cluster.
//
// In split-K within a cluster, each block reduces a share of the tile. With `split_k` alone, it reads the partial sums
// from the shared memory of the other blocks: partial sums are written, blocks wait for each other, read, and wait
// again before any of them exits. For few rows, this chain of latencies is a large part of the time beyond that of
// reading the weights. With this step, blocks send partial sums to the block that reduces them, by `st.async`, 16 bytes
// at a time in register order. An mbarrier in that block counts the bytes, so that the block continues as soon as it
// has received them, and can exit: nothing else writes to it.
//
// A thread reduces the positions that it holds itself, so that its own sums need no barrier. A block may write to
// another one only after that has started: all threads arrive at the cluster barrier in the prologue, after the
// initialization of the mbarrier, so that the wait after the main loop ends at once.
//
// The step applies to kernels of few rows with any epilogue, and to others whose epilogue only rounds, if a thread has
// at most 104 sums; there, all measured kernels gained. With more sums, the two forms are about as fast. With a bias or
// a matrix to add, which threads then read in pairs or element by element, kernels of more rows were slower.
//
// Left out: blocks read each other's partial sums, as `split_k` alone writes them.
//
// Source: PTX ISA, `st.async`: a store to the shared memory of a cluster that completes on an mbarrier there.
//
// Before:
//   vector.store %sums, %split_k_workspace[%slot, %thread * 4]
//   nvvm.cluster.arrive; nvvm.cluster.wait
//   %other = nvvm.mapa %split_k_workspace, 1
//   %partial = llvm.load %other[%own_slot, %thread * 4]
//   ...
//   nvvm.cluster.arrive; nvvm.cluster.wait
// After, with two splits of four slots:
//   if %thread == 0 { nvgpu.mbarrier.init %sent; nvgpu.mbarrier.arrive.expect_tx %sent, 4096 }    // in the prologue
//   nvvm.cluster.arrive.relaxed
//   ...
//   nvvm.cluster.wait
//   %reducer = nvvm.mapa %split_k_workspace, %slot / 2
//   st.async %reducer[%split * 2 + %slot mod 2, %thread * 4], %sums, %sent_of_reducer    // or a store, of own sums
//   nvgpu.mbarrier.try_wait.parity %sent
//   %partial = llvm.load %split_k_workspace[2 + %own_slot mod 2, %thread * 4]

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @push_partial_sums(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["split_k"],
                  when = "sends_sums"} {
    "tc.push_partial_sums"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
