// A declaration that does not fit the step of the package.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly}, !transform.any_op {transform.readonly})
  transform.named_sequence @signature(%module: !transform.any_op {transform.consumed}) {
    transform.include @bufferize failures(propagate) (%module, %module) : (!transform.any_op, !transform.any_op) -> ()
    transform.yield
  }
}
