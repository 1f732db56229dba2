// A pipeline that does not parse.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @no_mlir(%module: !transform.any_op {transform.readonly}) {
    transform.no_such_op %module
    transform.yield
  }
}
