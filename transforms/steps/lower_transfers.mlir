module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_transfers(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.vector.lower_transfer max_transfer_rank = 1
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    %accesses = transform.structured.match ops{["vector.load", "vector.store"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %bytes = transform.param.constant 16 : i64 -> !transform.param<i64>
    transform.annotate %accesses "alignment" = %bytes : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
