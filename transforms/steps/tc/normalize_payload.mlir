module attributes {transform.with_named_sequence} {
  transform.named_sequence @normalize_payload(%module: !transform.any_op {transform.readonly}) {
    "tc.normalize_payload"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
