module attributes {transform.with_named_sequence} {
  transform.named_sequence @convert_to_wmma(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %wmma = transform.apply_registered_pass "convert-vector-to-gpu" to %func : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %wmma {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %wmma : !transform.any_op
    transform.yield
  }
}
