// A pipeline whose second step fails: the matmul stands in no scf.while.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @first(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @second(%module: !transform.any_op {transform.readonly}) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %parent = transform.get_parent_op %matmul {op_name = "scf.while"} : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  transform.named_sequence @fails_later(%module: !transform.any_op {transform.consumed}) {
    transform.include @first failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @second failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
