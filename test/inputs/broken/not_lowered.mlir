// A pipeline of steps of the package that stops short of lowering its kernel.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @tile_to_blocks(!transform.any_op {transform.readonly},
    !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @bufferize(!transform.any_op {transform.readonly})
  transform.named_sequence private @map_to_blocks(!transform.any_op {transform.readonly})
  transform.named_sequence private @outline_kernel(!transform.any_op {transform.consumed}) -> !transform.any_op

  transform.named_sequence @attach_target(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %targeted = transform.apply_registered_pass "nvvm-attach-target" with options = {"chip" = "sm_80"} to %module
      : (!transform.any_op) -> !transform.any_op
    transform.yield %targeted : !transform.any_op
  }

  transform.named_sequence @not_lowered(%module: !transform.any_op {transform.consumed}) {
    %block_m = transform.tune.knob<"block_m"> = 64 from options = [64] -> !transform.param<i64>
    %block_n = transform.tune.knob<"block_n"> = 64 from options = [64] -> !transform.param<i64>
    transform.include @tile_to_blocks failures(propagate) (%module, %block_m, %block_n)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @map_to_blocks failures(propagate) (%module) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %targeted = transform.include @attach_target failures(propagate) (%kernels)
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
