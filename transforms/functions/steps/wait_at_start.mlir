// Lets a kernel be launched while the one before it ends: programmatic dependent launch of a kernel without a prologue.
//
// Between two kernels in a stream are the tail of the first, and the latency of the second's launch: as long as a norm
// of one row takes. The blocks of a dependent launch are resident before the previous kernel has ended, and wait for
// it before they access memory. Behind the wait, a block lets the next kernel be launched, so that all kernels but this
// one have ended when that one starts: it may load weights early.
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
