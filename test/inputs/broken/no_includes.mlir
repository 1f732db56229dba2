// A pipeline with a mistake: it includes no step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @no_includes(%module: !transform.any_op {transform.consumed}) {
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    transform.yield
  }
}
