// A pipeline whose step runs an op that no plug-in defines.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    "tc.raise"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @misspelt(%module: !transform.any_op {transform.consumed}) {
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
