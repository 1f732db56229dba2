// A pipeline with a mistake: a number that the attribute cannot hold.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll %matmul {factor = 2 : i64, knobs = {factor = "size * 1152921504606846976"}} : !transform.any_op
    transform.yield
  }
  transform.named_sequence @too_large(%module: !transform.any_op {transform.consumed}) {
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
