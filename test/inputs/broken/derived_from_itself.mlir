// A derived name that goes in a circle.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly})
      attributes {requires = [{condition = "a < 3", message = "a must be below 3"}]} {
    transform.yield
  }
  transform.named_sequence @derived_from_itself(%module: !transform.any_op {transform.consumed})
      attributes {derived = {a = "b + 1", b = "a + 1"}} {
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
