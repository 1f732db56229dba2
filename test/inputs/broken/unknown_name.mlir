// A pipeline with a mistake: an expression with a name that is not defined.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_forall %matmul num_threads [2] {knobs = {static_num_threads = "[sise]"}} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
  transform.named_sequence @unknown_name(%module: !transform.any_op {transform.consumed}) {
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
