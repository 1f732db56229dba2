// A pipeline with a mistake: a step that changes what is not a fact of a payload.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly})
      attributes {facts = {rows = "n"}} {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  transform.named_sequence @unknown_fact(%module: !transform.any_op {transform.consumed}) {
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
