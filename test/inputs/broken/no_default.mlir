// A knob without a default.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @no_default(%module: !transform.any_op {transform.readonly}) {
    %size = transform.tune.knob<"size"> options = [32, 24] -> !transform.param<i64>
    transform.yield
  }
}
