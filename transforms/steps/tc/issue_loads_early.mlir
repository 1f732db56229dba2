module attributes {transform.with_named_sequence} {
  transform.named_sequence @issue_loads_early(%module: !transform.any_op {transform.readonly}) {
    "tc.issue_loads_early"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
