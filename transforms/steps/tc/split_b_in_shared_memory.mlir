// Splits tiles of B of f32 into parts of tf32 in shared memory, without a preceding kernel.
//
// With `split_a_into_tf32`, a preceding kernel reads B once and writes both of its parts. Where B is small, its launch
// and the wait for its end take longer than its work, and a large part of the time of a short matmul. With this step,
// each block splits the tiles of B that it loads. TMA loads tiles of the unmodified B; the threads of the MMA replace
// each element by its large part, and store the small part to a second tile. Both tiles have one layout and the split
// is elementwise, so that a thread takes vectors in the order of their addresses, whatever the swizzle is.
//
// wgmma reads shared memory through the async proxy. Each thread issues a proxy fence after its stores, and a named
// barrier of the consumer threads precedes the MMA. A later TMA load writes the stage after its release, which follows
// the stores and the MMA.
//
// Blocks that share tiles of B each split them. With many columns, or many blocks of rows and a large k, that takes
// longer than the preceding kernel.
//
// wgmma reads tf32 only from K-major tiles. The threads therefore transpose tiles of an N-major B, in place of the copy
// that `transpose_operands` made: each reads its elements, four along k of one column at a time, and waits for the
// others, before it stores both parts. Neighbouring threads have neighbouring columns, so that they access different
// banks of shared memory.
//
// TMA must load B as it is: its pitch is a multiple of 16 bytes.
//
// Source: as `split_a_into_tf32`. PTX ISA, async proxy.
//
// Before:
//   linalg.generic {workspace} ins(%B) outs(%B1, %B2) ...
//   gpu.launch {
//     nvgpu.tma.async.load %b1_map[%k, %j], %full[%stage] to %shared_b1[%stage]
//     nvgpu.tma.async.load %b2_map[%k, %j], %full[%stage] to %shared_b2[%stage]
//     %next = tc.warpgroup_mma_3xtf32_registers %a1, %b1, %acc, %a2, %b2
// After:
//   gpu.launch {
//     nvgpu.tma.async.load %b_map[%k, %j], %full[%stage] to %shared_b1[%stage]
//     %b = vector.load %shared_b1[%stage, %box, %row, %column] ... for each vector of the thread ...
//     vector.store %large, %shared_b1[%stage, %box, %row, %column]
//     vector.store %small, %shared_b2[%stage, %box, %row, %column]
//     nvvm.fence.proxy
//     nvvm.barrier
//     %next = tc.warpgroup_mma_3xtf32_registers %a1, %b1, %acc, %a2, %b2

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @split_b_in_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["split_a_into_tf32"], requires = [
        {condition = "schedule == 'cooperative' and stagger == 0",
         message = "split_f32 = shared requires schedule = cooperative and stagger = 0"},
        {condition = "b_transposed == 0 or block_n * block_k <= 4096 * consumer_warpgroups",
         message = "split_f32 = shared with an N-major B requires block_n * block_k <= 4096 * consumer_warpgroups"}
      ]} {
    "tc.split_b_in_shared_memory"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
