// Enables programmatic dependent launch for a kernel without a prologue, which is then launched while the previous one
// ends.
//
// Between two kernels in a stream, the tail of the first and the launch latency of the second take as long as a norm of
// one row. The blocks of a dependent launch are resident before the previous kernel has ended, and wait for it before
// they access memory. After its wait, a block triggers the next launch, so that all kernels but this one have ended
// when the next one starts, which may therefore load weights early.
//
// Before:
//   gpu.launch blocks(...) ... {
//     memref.load %x[...]
// After:
//   gpu.launch blocks(...) ... {
//     nvvm.griddepcontrol wait
//     nvvm.griddepcontrol launch_dependents
//     memref.load %x[...]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @wait_at_start(%module: !transform.any_op {transform.readonly}) {
    "tc.wait_at_start"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
