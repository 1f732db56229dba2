// Adds the product of each k step to accumulators in f32 registers, for products of fp8.
//
// The tensor cores of Hopper sum products of fp8 with about 14 bits: they truncate each product below the 13th bit
// after the leading bit of the sum. The error of a sum over all of k grows with the square root of k. With this step,
// `wgmma` sums the products of one k step from zero, and f32 additions on the CUDA cores add these sums to the
// accumulator: the error is that of a sum over one k step, whatever k is. cuBLASLt, CUTLASS and PyTorch do the same
// unless the caller asks for fast accumulation (`fast_accum`).
//
// The additions need a second set of accumulators, and wait for the product of the step, while another warpgroup
// multiplies; the step therefore replaces `pipeline_wgmma`, which keeps one product of a warpgroup in flight. Where the
// registers of a thread do not hold two sets, a product is divided along n, into parts of `promoted_columns` columns.
//
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, 3.5.2; the name is CUTLASS's.
//
// Before:
//   scf.for %k iter_args(%acc) {
//     %next = nvgpu.warpgroup.mma %a, %b, %acc {waitGroup = 0}
// After:
//   scf.for %k iter_args(%acc) {
//     %zero = nvgpu.warpgroup.mma.init.accumulator
//     %step = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0}
//     %next = arith.addf %acc, %step

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @promote_accumulators(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "holds_two or accumulator_registers * 9 <= consumer_registers * 5 or k_steps == 1",
         message = "accumulators must leave 4/9 of consumer_registers to sums of a step; fast_accum = true needs none"}
      ]} {
    "tc.promote_accumulators"(%module) {columns = 256 : i64, knobs = {columns = "promoted_columns"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
