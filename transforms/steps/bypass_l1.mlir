// Sends the asynchronous copies past the L1 cache.
//
// A tile is read once by its block: what it leaves in L1 helps nobody, and L1 shares its bandwidth with shared memory.
// For padded tiles, whose odd rows start in the middle of a 32-byte sector, the way through L1 is the better one, which
// is why `wmma` does not include this step.
//
// Upstream can set the mark when it makes the copies, and loses it on those that it predicates: hence a step of its
// own, behind `pipeline_copies`.
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
    transform.annotate %copies "bypassL1" : !transform.any_op
    transform.yield
  }
}
