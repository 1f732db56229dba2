// Computes the elementwise ops that make A, such as the dequantization of weights, in the registers that `wgmma` reads.
//
// `wgmma` takes A from shared memory or from registers. With A in registers, TMA loads the source of A, such as weights
// of 8 or 4 bits, and no preceding kernel writes A to a workspace: a matmul with few rows, which is bound by reading
// its weights, reads half or a quarter of the bytes, and reads them once. Where the weights are B, the matmul computes
// C^T = B^T A^T (`swap_operands`).
//
// Each thread reads the source values of its elements of A and computes two elements at a time, by the ops of the
// payload in their types, so that A has the same values as in a workspace. Integers of 8 and 4 bits are converted to
// f16 or bf16 by bit manipulation. Scales and zero points are loaded from global memory, before the k loop if they do
// not depend on k, otherwise one k step ahead.
//
// A k step has one `wgmma` per 16 elements of k, each in a separate group. A warpgroup computes the registers of a
// product while earlier products run, and waits only for the product of the previous step that read the same registers.
//
// Source: mixed-input GEMM for Hopper in CUTLASS (examples 55 and 69), whose operand in registers is A too. PTX ISA,
// wgmma.mma_async: A may be in registers, B may not.
//
// Before:
//   func.call @producer(%Q, %Scales, %w)
//   %A_map = nvgpu.tma.create.descriptor %w ...
//   scf.for %k {
//     nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %shared_a[%stage]
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
        {condition = "cluster_m * cluster_n == 1", message = "register operands require clusters of one block"}
      ]} {
    "tc.prepare_in_registers"(%module) {first = 64 : i64, knobs = {first = "block_m"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
