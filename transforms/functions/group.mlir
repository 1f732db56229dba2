// Merges the kernels of a group of matmuls, which pipelines of matmuls have lowered, into one.
//
// `stepladder compile` runs it on the function of a group, which launches the kernel of each of its matmuls.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @group(%module: !transform.any_op {transform.readonly}) attributes {whole_function} {
    transform.include @merge_launches failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
