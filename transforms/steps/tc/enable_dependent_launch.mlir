// Enables programmatic dependent launch, which overlaps the prologue of a kernel with the end of the previous one.
//
// Two kernels in a stream are separated by the tail of the first, and by the launch latency and the prologue of the
// second. A small product does not amortize this time. With dependent launch, blocks initialize mbarriers and prefetch
// descriptors while the previous kernel drains, and wait for its completion before they access global memory. The
// manifest field `dependent_launch` tells the launcher to set the launch attribute.
//
// With tiles of few rows or columns, a block waits first and triggers the next launch after its wait. The next kernel
// may load weights early, and then all kernels before this one have ended, so that the first kernel of a function can
// overlap with what precedes the function.
//
// With `launch_trigger = exit`, no instruction triggers the next launch, which then starts when all blocks of this
// kernel have exited. A kernel of few blocks that runs repeatedly is faster in this way. With an early trigger, idle
// multiprocessors take blocks of the next launch, so that blocks move to other multiprocessors from launch to launch
// and, apparently, lose the half of the L2 cache that holds their tiles.
//
// Left out: a kernel starts after the end of the previous one (`dependent_launch = false`).
//
// Before:
//   gpu.barrier
//   scf.for %tile ...
// After, with tiles of more than 64 rows and 32 columns:
//   gpu.barrier
//   nvvm.griddepcontrol launch_dependents
//   nvvm.griddepcontrol wait
//   scf.for %tile ...
// After, with launch_trigger = exit:
//   gpu.barrier
//   nvvm.griddepcontrol wait
//   scf.for %tile ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @enable_dependent_launch(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {dependent_launch = false}} {
    "tc.enable_dependent_launch"(%module) {trigger = "start", knobs = {trigger =
      "'exit' if launch_trigger == 'exit' else 'wait' if is_alone and (block_m <= 64 or block_n <= 32) else 'start'"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
