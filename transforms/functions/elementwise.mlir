// Compiles one linalg op that is no matmul to one kernel: an elementwise op, a reduction, a transpose or a copy.
//
// The payload is a function on tensors with the op, the initial values of its results, and views of its operands, as
// `outline_elementwise` writes it.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @elementwise(%module: !transform.any_op {transform.consumed}) attributes {whole_function} {
    %target = transform.tune.knob<"target"> = "sm_80"
      from options = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param
    %dependent_launch = transform.tune.knob<"dependent_launch"> = false from options = [false, true]
      {description = "the kernel may be launched while the one before it ends; from sm_90 on"} -> !transform.any_param

    %buffers = transform.include @bufferize_function failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @collapse_loops failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.include @distribute_elements failures(propagate) (%buffers) : (!transform.any_op) -> ()
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
