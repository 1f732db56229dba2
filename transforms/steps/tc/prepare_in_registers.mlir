// Computes the elementwise ops that make A, such as the dequantization of weights, in the registers that `wgmma` reads.
//
// `wgmma` takes A from shared memory or from registers. With A in registers, TMA loads what A is made from, such as
// weights of 8 or 4 bits, and no kernel before the matmul writes A to a workspace: a matmul with few rows, which takes
// as long as reading its weights, reads half or a quarter of the bytes, and once. Where the weights are B, the matmul
// computes C^T = B^T A^T (`swap_operands`).
//
// Each thread reads the numbers for its elements of A and computes two at a time, by the ops of the payload in their
// types, so that A has the values that a workspace would have. Integers of 8 and 4 bits become f16 or bf16 by their
// bits. Scales and zero points are loaded from global memory: before the loop over k where they are the same for all
// of it, else a k step ahead.
//
// A k step is one product for each 16 of k, each a group of its own. A warpgroup computes the registers of a product
// while those before it run, and waits only for the one of the step before that has read them.
//
// Source: mixed-input GEMM for Hopper in CUTLASS (examples 55 and 69), whose operand in registers is A too. PTX ISA,
// wgmma.mma_async: A may be in registers, B may not.
//
// Before:
//   func.call @producer(%Q, %Scales, %w)
//   %a_map = nvgpu.tma.create.descriptor %w ...
//   scf.for %k {
//     nvgpu.tma.async.load %a_map[%k, %i], %full[%stage] to %shared_a[%stage]
//     nvgpu.mbarrier.try_wait.parity %full[%stage], %phase
//     %next = nvgpu.warpgroup.mma %a, %b, %acc {waitGroup = 1}
// After, with block_k = 64:
//   %q_map = nvgpu.tma.create.descriptor %Q ...
//   %scale = memref.load %Scales[%row]
//   scf.for %k {
//     nvgpu.tma.async.load %q_map[%k, %i], %full[%stage] to %shared_q[%stage]
//     nvgpu.mbarrier.try_wait.parity %full[%stage], %phase
//     %q = vector.load %shared_q[%stage, %row, %column] : vector<2xi8>
//     ... 15 more ...
//     nvvm.wgmma.wait.group.sync.aligned 3
//     %a = %q as vector<2xf16>, times %scale; 3 more
//     %0 = tc.warpgroup_mma_registers %a, %b, %acc {step = 0}
//     ... steps 1 to 3 ...
//     nvvm.wgmma.wait.group.sync.aligned 4

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prepare_in_registers(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["outline_producer"], requires = [
        {condition = "cluster_m * cluster_n == 1", message = "an operand in registers must have clusters of one block"}
      ]} {
    "tc.prepare_in_registers"(%module) {first = 64 : i64, knobs = {first = "block_m"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
