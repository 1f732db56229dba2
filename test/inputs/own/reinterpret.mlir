// Shows bf16 as f16, or whatever the knob says.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @show(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    "tc.reinterpret_elements"(%func) {old = bf16, new = f16, knobs = {new = "shown"}} : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @before(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @reinterpret(%module: !transform.any_op {transform.consumed}) {
    %shown = transform.tune.knob<"shown"> = "f16" from options = ["f16", "f32", "bf16"] -> !transform.any_param
    transform.include @before failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @show failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
