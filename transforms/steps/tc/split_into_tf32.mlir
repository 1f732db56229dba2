// Multiplies f32 by three products of tf32 each on wgmma, with the accuracy of f32.
//
// `multiply_as_3xtf32` describes the split a = a1 + a2 and the sum of the three products. wgmma reads B from shared
// memory as TMA writes it, so that this step splits the operands in global memory instead of registers, in a kernel
// before the matmul (`map_repacking_to_threads`). A kernel that transposes or repacks an operand also splits it. A
// stage has tiles of both parts, which are loaded once for the three products.
//
// The large part of an infinity is 1 with its sign, and the small part is the infinity itself: if a1 were infinite and
// b2 zero, a1 b2 would be NaN. A value of 3.4026e38 or more, which would round to an infinity, is truncated instead.
// Sums are thus infinite or NaN exactly where sums in f32 are.
//
// The products of a k step are accumulated from zero, the small ones first, and an f32 addition adds them to the
// accumulator. The addition waits for the products of the step, while another warpgroup multiplies; the step therefore
// replaces `pipeline_wgmma`, which keeps one product of a warpgroup in flight.
//
// Source: as `multiply_as_3xtf32`.
//
// Before:
//   %A_map = nvgpu.tma.create.descriptor %A
//   gpu.launch {
//     nvgpu.mbarrier.arrive.expect_tx %full[%stage], 32768
//     nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %shared_a[%stage]
//     ... the same for B ...
//     %next = nvgpu.warpgroup.mma %a, %b, %acc
// After:
//   linalg.generic {workspace} ins(%A) outs(%A1, %A2) {
//     %a1 = arith.bitcast (arith.andi (arith.addi %bits, %half), %kept)
//     %a2 = arith.subf %a, %a1
//   }
//   %a1_map = nvgpu.tma.create.descriptor %A1
//   %a2_map = nvgpu.tma.create.descriptor %A2
//   gpu.launch {
//     nvgpu.mbarrier.arrive.expect_tx %full[%stage], 65536
//     nvgpu.tma.async.load %a1_map[%k, %i], %full[%stage] to %shared_a1[%stage]
//     nvgpu.tma.async.load %a2_map[%k, %i], %full[%stage] to %shared_a2[%stage]
//     ... the same for B ...
//     %next = tc.warpgroup_mma_3xtf32 %a1, %b1, %acc, %a2, %b2

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @split_into_tf32(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "products == 1",
         message = "a pair of f32 products requires allow_tf32 = true; a single product keeps f32 accuracy without it"},
        {condition = "accumulator_registers * 2 + 32 <= consumer_registers",
         message = "two sets of accumulators and 32 other registers must fit in consumer_registers"}
      ]} {
    "tc.split_into_tf32"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
