// Interleaves the `cp.async` copies of an iteration with the products of its k sub-steps.
//
// A burst of copies fills the queue of the load/store units and delays the fragment loads that follow it. The step
// distributes the copies over the sub-steps, so that each group of copies is issued between two runs of products.
//
// Upstream orders copies by pipeline stage only.
//
// Left out: an iteration issues all its copies at once.
//
// Before:
//   scf.for { copy a0, a1, b0, b1; load f1; products f0; ... load f2; products f1; ... }
// After:
//   scf.for { load f1; copy a0, a1; products f0; ... load f2; copy b0, b1; create_group; products f1; ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @interleave_copies(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["rotate_loop"]} {
    "tc.interleave_copies"(%module) : (!transform.any_op) -> ()

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernel) : (!transform.any_op) -> ()
    transform.yield
  }
}
