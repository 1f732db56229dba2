// A function with several matmuls becomes calls of functions that are one kernel each, and one workspace.
//
// Each function that is called is a payload of another pipeline: those of matmuls of `wgmma`, `mma_sync` or `wmma`, the
// others of `elementwise`. They are compiled from the IR after `outline_elementwise`; the buffers that their kernels are
// launched on are those of the IR after the last step.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @functions(%module: !transform.any_op {transform.consumed}) attributes {whole_function} {
    %unrolled = transform.include @unroll_loops failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @decompose_ops failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    transform.include @permute_contractions failures(propagate) (%unrolled) : (!transform.any_op) -> ()
    %matmuls = transform.include @outline_matmuls failures(propagate) (%unrolled)
      : (!transform.any_op) -> !transform.any_op
    transform.include @fuse_elementwise failures(propagate) (%matmuls) : (!transform.any_op) -> ()
    %calls = transform.include @outline_elementwise failures(propagate) (%matmuls)
      : (!transform.any_op) -> !transform.any_op
    %buffers = transform.include @bufferize_function failures(propagate) (%calls)
      : (!transform.any_op) -> !transform.any_op
    transform.include @plan_workspace failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.yield
  }
}
