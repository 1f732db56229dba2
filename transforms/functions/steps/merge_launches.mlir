// Merges the launches of a group of matmuls into one: a grouped GEMM.
//
// When kernels are launched one after the other, each leaves multiprocessors idle in its last wave of tiles; a kernel
// with fewer tiles than the GPU has multiprocessors, such as an expert of a mixture, does so in its only wave. In one
// launch the tiles of all are computed at the same time. Each kernel becomes a range of the blocks of the merged one,
// with its own parameters; launches of one kernel share its code. A persistent block loops over the tiles of its range.
//
// A PTX comment ends the code of each kernel: otherwise LLVM would merge the last stores of all kernels, for which
// ptxas serializes `wgmma`.
//
// Upstream has no op that merges kernels.
//
// Before:
//   gpu.launch_func @up::@up blocks in (%c8, %c1, %c1) ... args(%a0, %b0, %c0)
//   gpu.launch_func @down::@down blocks in (%c24, %c1, %c1) ... args(%a1, %b1, %c1)
// After:
//   gpu.launch_func @group_kernel::@group_kernel blocks in (%c32, %c1, %c1) ... args(%a0, %b0, %c0, %a1, %b1, %c1)
//   llvm.func @group_kernel(...) {
//     %block = nvvm.read.ptx.sreg.ctaid.x : i32
//     %first = llvm.icmp "ult" %block, %c8 : i32
//     llvm.cond_br %first, ^up, ^rest
//   ^rest:
//     %place = llvm.sub %block, %c8 : i32
//     llvm.br ^down

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @merge_launches(%module: !transform.any_op {transform.readonly}) {
    "tc.merge_launches"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
