// Compiles an attention to one kernel for Hopper.
//
// The payload is a function on tensors with the two products, and the softmax and elementwise ops between them, as
// `outline_attention` writes it. The knobs are chosen by an estimate of the time; docs/payload.md describes the kernel.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @attention(%module: !transform.any_op {transform.consumed})
      attributes {whole_function, derived = {
        warpgroups = "rows // 64",
        threads = "rows * 2",
        // Keys of a tile: half as many in blocks of 64 rows, of which two are resident on a multiprocessor, and where
        // blocks exchange results.
        columns = "128 if rows == 128 and splits == 1 else 64",
        // Warpgroups that are half an iteration apart have four tiles of values, others two.
        tiles = "6 if rows == 128 else 4",
        // For heads of 128 elements, the largest: the tiles of queries, keys and values, and what blocks exchange,
        // which is the sums, the largest score and the sum of the weights of each row.
        shared_bytes = "256 * (rows + tiles * columns) + (552 * rows if splits > 1 else 0)"}} {
    %target = transform.tune.knob<"target"> = "sm_90a" from options = ["sm_90a"]
      {description = "GPU architecture that the kernel is for"} -> !transform.any_param
    %rows = transform.tune.knob<"rows"> = 128 from options = [64, 128]
      {description = "queries of a block: 64 for each of its warpgroups"} -> !transform.any_param
    %splits = transform.tune.knob<"splits"> = 1 from options = [1, 2, 3, 4, 5, 6, 7, 8, 16]
      {description = "blocks of a cluster that have a part of the keys each (split-KV)"} -> !transform.any_param
    %dependent_launch = transform.tune.knob<"dependent_launch"> = false from options = [false, true]
      {description = "the kernel may be launched while the one before it ends"} -> !transform.any_param
    %math = transform.tune.knob<"math"> = "fast" from options = ["fast", "libdevice"]
      {description = "fast: exponentials are approximated, and what causal masks hide is not read; libdevice: neither"}
      -> !transform.any_param

    transform.include @distribute_attention failures(propagate) (%module) : (!transform.any_op) -> ()
    %buffers = transform.include @bufferize_function failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @copy_tiles_ahead failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.tune.alternatives<"decouple_warpgroups"> selected_region = 0
        attributes {knobs = {selected_region_attr = "rows == 128"}} {
    }, {
      transform.include @decouple_warpgroups failures(propagate) (%buffers) : (!transform.any_op) -> ()
    }
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
