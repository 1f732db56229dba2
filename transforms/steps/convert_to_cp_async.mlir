// Lets copies go from global to shared memory on their own, without passing through registers.
//
// A load and a store become one `cp.async`: the thread issues it and goes on, and learns by waiting for its group when
// the data is there. No registers hold the tile in flight, which is what allows more than one of them.
//
// For sm_80 and later.
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
        {condition = "target != 'sm_75'", message = "the target must have asynchronous copies: sm_80 or later"}
      ]} {
    %bodies = transform.structured.match ops{["func.func", "gpu.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %asynchronous = transform.nvgpu.create_async_groups %bodies : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
