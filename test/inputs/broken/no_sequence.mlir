// A pipeline file without a sequence of its name; a declaration defines none.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @another(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}
