// Begins with a step that does nothing, so that what normalize_payload refuses can be shown with --from.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @normalize_payload(!transform.any_op {transform.readonly})
  transform.named_sequence @before(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @normalize(%module: !transform.any_op {transform.consumed}) {
    transform.include @before failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @normalize_payload failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
