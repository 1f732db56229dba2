// A pipeline file without a sequence of its name.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @another(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}
