// Compiles a chain of linalg ops over the same rows, such as those of a softmax or a layer norm, to one kernel.
//
// The payload is a function on tensors with the ops, the initial values of their results, and views of their operands,
// as `outline_rows` writes it.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @rows(%module: !transform.any_op {transform.consumed}) attributes {whole_function} {
    %target = transform.tune.knob<"target"> = "sm_80"
      from options = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param
    %dependent_launch = transform.tune.knob<"dependent_launch"> = false from options = [false, true]
      {description = "the kernel may be launched while the one before it ends; from sm_90 on"} -> !transform.any_param
    %threads = transform.tune.knob<"threads"> = 256 from options = [256, 512, 1024]
      {description = "threads of a block, which computes a row of more than 512 columns; a warp computes a shorter one"}
      -> !transform.any_param
    %math = transform.tune.knob<"math"> = "fast" from options = ["fast", "libdevice"]
      {description = "fast: a softmax is approximated where all results have 16 bits; libdevice: never"}
      -> !transform.any_param

    transform.tune.alternatives<"approximate_softmax"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast'"}} {
    }, {
      transform.include @approximate_softmax failures(propagate) (%module) : (!transform.any_op) -> ()
    }
    %buffers = transform.include @bufferize_function failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @collapse_loops failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.include @distribute_rows failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.tune.alternatives<"dependent_launch"> selected_region = 0
        attributes {knobs = {selected_region_attr = "dependent_launch"}} {
    }, {
      transform.include @wait_at_start failures(propagate) (%buffers) : (!transform.any_op) -> ()
    }
    %kernels = transform.include @outline_kernel failures(propagate) (%buffers)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_fp8_casts failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.yield
  }
}
