// Loads the tile of iteration i + 1 into registers while iteration i computes, and stores it at the top of i + 1.
//
// A global load takes far longer than a product. Software pipelining cuts the copy in two: the load goes an iteration
// early and the store waits for it, so the tensor cores have a whole tile of work in between. The first load is peeled
// off in front of the loop and the last computation behind it.
//
// One buffer gives the form of CC'22, store, barrier, compute, barrier; two buffers save the second barrier. Upstream's
// op leaves the loads at the end of the body: `hoist_prefetch` moves them in front of the computation.
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
  transform.named_sequence @prefetch_to_registers(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["stage_in_shared_memory", "vectorize_copies"]} {
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    %pipelined = transform.nvgpu.pipeline_shared_memory_copies failures(propagate) %k_loop
      {depth = 1 : i64, peel_epilogue} : (!transform.any_op) -> !transform.any_op

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %kernel {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %kernel : !transform.any_op
    transform.yield
  }
}
