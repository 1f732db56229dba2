// Pipelines the k loop in software through registers: loads the tile of iteration i + 1 while iteration i computes.
//
// A global load takes far longer than a product. The step splits each copy: the load is issued one iteration early, and
// the store to shared memory, which waits for it, starts the next iteration. The products of a whole tile are between
// the two. The first load becomes the prologue of the loop, and the last computation its epilogue.
//
// With stages = 1 the loop has the form of CC'22 (store, barrier, compute, barrier); two stages save the second
// barrier. Upstream's op leaves the loads at the end of the loop body; `hoist_prefetch` moves them before the
// computation.
//
// Left out: each iteration loads its own tile, and waits for it before it computes.
//
// Source: CC'22, sections 3.4 and 3.7.
//
// Before:
//   scf.for %k = 0 to 512 step 32 {
//     %0 = vector.transfer_read %A[%i, %k]
//     vector.transfer_write %0, %shared_a[...]
//     gpu.barrier
//     ... compute ...
//   }
// After:
//   %first = vector.transfer_read %A[%i, 0]
//   %last = scf.for %k = 0 to 480 step 32 iter_args(%0 = %first) {
//     vector.transfer_write %0, %shared_a[...]
//     gpu.barrier
//     ... compute ...
//     %next = vector.transfer_read %A[%i, %k + 32]
//     scf.yield %next
//   }
//   ... store %last, barrier, compute ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prefetch_to_registers(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["stage_in_shared_memory", "vectorize_copies"]} {
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    // Depth 1: one tile in registers. The peeled epilogue avoids a predicate on every load of the loop.
    %pipelined = transform.nvgpu.pipeline_shared_memory_copies failures(propagate) %k_loop
      {depth = 1 : i64, peel_epilogue} : (!transform.any_op) -> !transform.any_op

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernel) : (!transform.any_op) -> ()
    transform.yield
  }
}
