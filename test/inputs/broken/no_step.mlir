// A pipeline that includes a step which no file defines.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @nowhere(!transform.any_op {transform.readonly})
  transform.named_sequence @no_step(%module: !transform.any_op {transform.consumed}) {
    transform.include @nowhere failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
