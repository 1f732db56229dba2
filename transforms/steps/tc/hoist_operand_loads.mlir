// Loads the operands of an epilogue while the last MMAs of a tile run.
//
// The epilogue loads a bias or a matrix where it uses them, between barriers, across which neither LLVM nor ptxas moves
// loads: each box of C waits for memory, while the tensor cores are idle. The addresses depend only on the coordinates
// of the tile. This step moves the loads before the wait for the last MMA, which takes a k step, and keeps the values
// in registers that the accumulators leave free. If there are not enough registers, only the loads of the first boxes
// are moved. Moving the loads before the main loop would cost more: ptxas waits for them before the first MMA.
//
// At the edges of C, the loads of a box are under the conditions that it has rows and columns of C. They move into an
// `scf.if` of these conditions, which results in zeros elsewhere. Boxes that read the same elements of a bias, such as
// all of a transposed C, share the loads of the first one.
//
// Left out: each box loads its operands where it uses them.
//
// Source: CUTLASS, whose epilogues load C and auxiliary matrices ahead of their use; buffers in shared memory take the
// place of these registers there.
//
// Before:
//   scf.for ... { nvgpu.warpgroup.mma ... }
//   nvvm.wgmma.wait.group.sync.aligned 0
//   nvvm.barrier id = %warpgroup number_of_threads = 128
//   %b = vector.load %bias[%column] : memref<4096xf16>, vector<2xf16>
// After:
//   scf.for ... { nvgpu.warpgroup.mma ... }
//   %b = vector.load %bias[%column] : memref<4096xf16>, vector<2xf16>
//   nvvm.wgmma.wait.group.sync.aligned 0
//   nvvm.barrier id = %warpgroup number_of_threads = 128

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @hoist_operand_loads(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.hoist_operand_loads"(%module) {registers = 64 : i64, knobs = {registers = "operand_registers"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
