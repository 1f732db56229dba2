// Lets a kernel prepare itself while the one before it in the stream ends.
//
// Between two kernels lies the time that the last blocks of one and the first instructions of the next take: of no
// weight for a large product, of some for a small one. Blocks initialise barriers and fetch descriptors while the
// kernel before is at its end, and wait for it before they read memory. The launcher asks for it: the manifest says so
// (`dependent_launch`).
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
  transform.named_sequence @enable_dependent_launch(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {dependent_launch = false}} {
    "tc.enable_dependent_launch"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
