// Enables programmatic dependent launch: the prologue of a kernel overlaps the end of the previous kernel in the
// stream.
//
// Between two kernels in a stream lie the tail of one and the launch latency and prologue of the next, which a small
// product does not amortize. With dependent launch, blocks initialize mbarriers and prefetch descriptors while the
// previous kernel drains, and wait for its completion before they access global memory. The manifest tells the launcher
// to set the launch attribute (`dependent_launch`).
//
// Before:
//   gpu.barrier
//   scf.for %tile ...
// After:
//   gpu.barrier
//   nvvm.griddepcontrol launch_dependents
//   nvvm.griddepcontrol wait
//   scf.for %tile ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @enable_dependent_launch(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {dependent_launch = false}} {
    "tc.enable_dependent_launch"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
