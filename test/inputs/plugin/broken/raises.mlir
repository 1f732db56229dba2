// A pipeline whose step runs an op of a plug-in.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    "tc.raises"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @raises(%module: !transform.any_op {transform.consumed}) {
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
