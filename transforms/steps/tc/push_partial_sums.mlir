// Sends partial sums of split-K to the block that reduces them, through the distributed shared memory of a cluster.
//
// Where blocks of a cluster split k, each reduces some rows of the tile. `split_k` makes them read these rows from the
// shared memory of the other blocks: partial sums are written, blocks wait for each other, read, and wait again before
// any of them exits. For few rows, this chain of latencies is a good part of what HBM's rate does not explain. Blocks
// that write the rows to their reducer instead wait once, read their own memory, and exit.
//
// A block may write to another one as soon as that has started. All threads arrive at the barrier of the cluster in the
// prologue, so that the wait behind the main loop ends at once.
//
// Source: PTX ISA, distributed shared memory: a block may also write to the shared memory of others of its cluster.
//
// Before:
//   memref.store %sum, %split_k_workspace[%row, %column]
//   nvvm.cluster.arrive; nvvm.cluster.wait
//   %other = nvvm.mapa %split_k_workspace, 1
//   %partial = llvm.load %other[%own_row, %column]
//   ...
//   nvvm.cluster.arrive; nvvm.cluster.wait
// After, with two splits of 16 rows:
//   nvvm.cluster.arrive.relaxed                              // in the prologue
//   ...
//   nvvm.cluster.wait
//   %reducer = nvvm.mapa %split_k_workspace, %row / 8
//   llvm.store %sum, %reducer[%split * 8 + %row mod 8, %column]
//   nvvm.cluster.arrive; nvvm.cluster.wait
//   %partial = llvm.load %split_k_workspace[8 + %own_row mod 8, %column]

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @push_partial_sums(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["split_k"],
                  when = "streams_weights and split_k > 1 and split_k_workspace == 'cluster'"} {
    "tc.push_partial_sums"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
