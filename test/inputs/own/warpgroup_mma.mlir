// The ops of `convert_to_wgmma` without its requirements, which refuse types of a payload before the step runs. Begins
// with a step that does nothing, so that the IR need not be a payload.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @before(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @step(%module: !transform.any_op {transform.readonly}) {
    "tc.load_by_tma"(%module) {stages = 1 : i64, warpgroups = 2 : i64} : (!transform.any_op) -> ()
    "tc.convert_to_warpgroup_mma"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @warpgroup_mma(%module: !transform.any_op {transform.consumed}) {
    transform.include @before failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
