// A pipeline with a mistake: a requirement on a derived name that has an unknown name.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly})
      attributes {requires = [{condition = "half < 3", message = "the size does not fit"}]} {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  transform.named_sequence @derived_unknown(%module: !transform.any_op {transform.consumed}) attributes {derived = {half = "sice // 2"}} {
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
