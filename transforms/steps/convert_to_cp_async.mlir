// Converts copies from global to shared memory to `cp.async`, which bypasses registers.
//
// A load and a store become one `cp.async`: a thread issues it, continues, and waits for its commit group later. Tiles
// in flight occupy no registers, so that several stages can be in flight at once. The instruction needs sm_80.
//
// Before:
//   %0 = vector.transfer_read %A[%i, %k] : memref<512x512xf16>, vector<8xf16>
//   vector.transfer_write %0, %shared_a[%r, %c] : vector<8xf16>, memref<...>
// After:
//   %0 = nvgpu.device_async_copy %A[%i, %k], %shared_a[%r, %c], 8 : memref<512x512xf16> to memref<...>
//   %group = nvgpu.device_async_create_group %0, ...
//   nvgpu.device_async_wait %group

module attributes {transform.with_named_sequence} {
  transform.named_sequence @convert_to_cp_async(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["stage_in_shared_memory", "vectorize_copies"], requires = [
        {condition = "target != 'sm_75'",
         message = "the target must have asynchronous copies (cp.async): sm_80 or later"}
      ]} {
    %bodies = transform.structured.match ops{["func.func", "gpu.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    // Takes functions before or after outlining: `mma_sync` runs it before, `wmma` after.
    %asynchronous = transform.nvgpu.create_async_groups %bodies : (!transform.any_op) -> !transform.any_op
    // The reads of global memory, which only the replaced stores used.
    transform.apply_dce to %asynchronous : !transform.any_op
    transform.yield
  }
}
