// A pipeline with a mistake: alternatives that are chosen by what is no expression.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @condition_syntax(%module: !transform.any_op {transform.consumed}) {
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    transform.tune.alternatives<"choice"> selected_region = 0 attributes {knobs = {selected_region_attr = "size =="}} {
    }, {
      transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
