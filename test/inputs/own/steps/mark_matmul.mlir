// Marks the matmul with numbers that follow knobs: an i64, a list, a truth value, and a text.
//
// Before:
//   linalg.matmul ins(...)
// After, with width = 4:
//   linalg.matmul {width = 4 : i64} ins(...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @mark_matmul(%module: !transform.any_op {transform.readonly},
      %width: !transform.param<i64> {transform.readonly}) attributes {optimization, requires = [
        {condition = "width < m", message = "width must be below m"}
      ]} {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.annotate %matmul "width" = %width : !transform.any_op, !transform.param<i64>
    %double = transform.param.constant 2 : i64 {knobs = {value = "width * 2"}} -> !transform.param<i64>
    transform.annotate %matmul "double" = %double : !transform.any_op, !transform.param<i64>
    %mode = transform.param.constant "slow" {knobs = {value = "mode"}} -> !transform.any_param
    transform.annotate %matmul "mode" = %mode : !transform.any_op, !transform.any_param
    transform.yield
  }
}
