// Multiplies f32 by three products of tf32 each on wgmma, and splits A in registers.
//
// `split_into_tf32` writes both parts of A and B to workspaces. Where one operand is much larger than the other, that
// takes longer than the product: the operand is read once and written twice. With this step it is not copied. TMA loads
// tiles of A, and each thread splits its elements of a tile in registers, from which wgmma takes A. Only B is split by
// a preceding kernel. Where the larger operand is B, the matmul computes C^T = B^T A^T (`swap_operands`).
//
// wgmma supports f32 in shared memory only as K-major operands. Threads can read A in any order, so that a column-major
// A is loaded directly too, and the copy to its transpose is removed.
//
// The parts, the order of the products and the sum are those of `split_into_tf32`. Infinities, values that round to
// one, and subnormals need nine instructions per element, most of which a multiprocessor executes at half rate;
// others need three. A warp votes once a k step whether any of its elements needs them. The test uses additions and
// multiplications, which run at full rate.
//
// Source: as `multiply_as_3xtf32`. PTX ISA, wgmma.mma_async: A may be in registers, B may not. CUDA C++ Programming
// Guide, throughput of arithmetic instructions.
//
// Before:
//   %A_map = nvgpu.tma.create.descriptor %A
//   gpu.launch {
//     nvgpu.mbarrier.arrive.expect_tx %full[%stage], 32768
//     nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %shared_a[%stage]
//     ... the same for B ...
//     %next = nvgpu.warpgroup.mma %a, %b, %acc
// After:
//   linalg.generic {workspace} ins(%B) outs(%B1, %B2) ...
//   gpu.launch {
//     nvgpu.mbarrier.arrive.expect_tx %full[%stage], 49152
//     nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %shared_a[%stage]
//     nvgpu.tma.async.load %b1_map[%k, %j], %full[%stage] to %shared_b1[%stage]
//     nvgpu.tma.async.load %b2_map[%k, %j], %full[%stage] to %shared_b2[%stage]
//     %a = memref.load %shared_a[%stage, %row, %column] ... for each element of the thread ...
//     %ordinary = nvvm.vote.sync all ...
//     %a1, %a2 = scf.if %ordinary {
//       %large = arith.bitcast (arith.andi (arith.addi %bits, %half), %kept)
//       %small = arith.subf %a, %large
//     } else { ... with selects for infinities and subnormal numbers ... }
//     %next = tc.warpgroup_mma_3xtf32_registers %a1, %b1, %acc, %a2, %b2

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @split_a_into_tf32(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "products == 1",
         message = "a pair of f32 products requires allow_tf32 = true; a single product keeps f32 accuracy without it"},
        {condition = "read_windows == 0", message = "split_f32 = registers requires whole buffers as A and B"},
        {condition = "cluster_m * cluster_n == 1", message = "register operands require clusters of one block"},
        {condition = "tile_scheduler == 'data_parallel'",
         message = "register operands require tile_scheduler = data_parallel"},
        {condition = "block_m % 64 == 0", message = "split_f32 = registers requires block_m to be a multiple of 64"},
        {condition = "accumulator_registers * 2 + fragment_registers + 40 <= consumer_registers",
         message = "two sets of accumulators, fragment_registers of A and 40 registers must fit in consumer_registers"}
      ]} {
    "tc.split_a_into_tf32"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
