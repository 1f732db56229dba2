// Makes `cp.async` bypass the L1 cache (`cp.async.cg`).
//
// A block reads each tile of A and B once. A copy in L1 has no reuse, and costs bandwidth that L1 shares with shared
// memory. `wmma` does not include this step: its padded tiles have rows that start in the middle of a 32-byte sector,
// for which the path through L1 is faster.
//
// Upstream sets the attribute when it creates the copies, and loses it on copies that pipelining predicates. The step
// therefore runs after `pipeline_copies`.
//
// Left out: the copies go through L1 (`cp.async.ca`).
//
// Before:
//   nvgpu.device_async_copy %A[%i, %k], %shared_a[%stage, %r, %c], 8, %elements
// After:
//   nvgpu.device_async_copy %A[%i, %k], %shared_a[%stage, %r, %c], 8, %elements {bypassL1}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @bypass_l1(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %copies = transform.structured.match ops{["nvgpu.device_async_copy"]} in %module
      : (!transform.any_op) -> !transform.any_op
    // `convert-nvgpu-to-nvvm` lowers a copy with this attribute to `cp.async.cg`, others to `cp.async.ca`.
    transform.annotate %copies "bypassL1" : !transform.any_op
    transform.yield
  }
}
