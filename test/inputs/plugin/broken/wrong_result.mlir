// A pipeline whose step runs an op of a plug-in with a result.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    %found = "tc.with_result"(%module) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  transform.named_sequence @wrong_result(%module: !transform.any_op {transform.consumed}) {
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
