// Compiles an attention to one kernel for Hopper.
//
// The payload is a function on tensors with the two products, and the softmax and elementwise ops between them, as
// `outline_attention` writes it.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @attention(%module: !transform.any_op {transform.consumed})
      attributes {whole_function, derived = {
        // At most, for heads of 128 elements: the tiles of queries, keys and values.
        shared_bytes = "256 * (128 + 6 * 128)"}} {
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param
    %dependent_launch = transform.tune.knob<"dependent_launch"> = false from options = [false, true]
      {description = "the kernel may be launched while the one before it ends"} -> !transform.any_param
    %math = transform.tune.knob<"math"> = "fast" from options = ["fast", "libdevice"]
      {description = "fast: exponentials are approximated, and what a causal mask hides is not read; libdevice: neither"}
      -> !transform.any_param

    transform.include @distribute_attention failures(propagate) (%module) : (!transform.any_op) -> ()
    %buffers = transform.include @bufferize_function failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @copy_tiles_ahead failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.include @decouple_warpgroups failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.tune.alternatives<"dependent_launch"> selected_region = 0
        attributes {knobs = {selected_region_attr = "dependent_launch"}} {
    }, {
      transform.include @wait_at_start failures(propagate) (%buffers) : (!transform.any_op) -> ()
    }
    transform.include @pack_shared_memory failures(propagate) (%buffers) : (!transform.any_op) -> ()
    %kernels = transform.include @outline_kernel failures(propagate) (%buffers)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_to_wgmma failures(propagate) (%kernels) : (!transform.any_op) -> ()
    %nvvm = transform.include @lower_to_nvvm failures(propagate) (%kernels, %target)
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    transform.tune.alternatives<"flush_denormals"> selected_region = 0
        attributes {knobs = {selected_region_attr = "math == 'fast'"}} {
    }, {
      transform.include @flush_denormals failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    }
    transform.include @lower_to_inline_ptx failures(propagate) (%nvvm) : (!transform.any_op) -> ()
    transform.yield
  }
}
