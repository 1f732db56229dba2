// Includes the sequence that steps share before elementwise fusion. `--from generalize` takes any IR, not only a matmul.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @before(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }

  transform.named_sequence @generalize(%module: !transform.any_op {transform.readonly}) {
    transform.include @generalize_elementwise failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  transform.named_sequence @generalize_ops(%module: !transform.any_op {transform.consumed}) {
    transform.include @before failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @generalize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
