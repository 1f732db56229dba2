// Includes the sequence that steps share, on kernels only. `--from clean` takes any IR, not only a matmul.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @before(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }

  transform.named_sequence @clean(%module: !transform.any_op {transform.readonly}) {
    %kernels = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernels) : (!transform.any_op) -> ()
    transform.yield
  }

  transform.named_sequence @clean_kernels(%module: !transform.any_op {transform.consumed}) {
    transform.include @before failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @clean failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
