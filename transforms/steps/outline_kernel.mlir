module attributes {transform.with_named_sequence} {
  transform.named_sequence @outline_kernel(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %sunk = transform.apply_registered_pass "gpu-launch-sink-index-computations" to %module
      : (!transform.any_op) -> !transform.any_op
    %outlined = transform.apply_registered_pass "gpu-kernel-outlining" to %sunk
      : (!transform.any_op) -> !transform.any_op
    transform.yield %outlined : !transform.any_op
  }
}
