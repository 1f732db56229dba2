// Rotates the main loop by one k sub-step: fragments are loaded one sub-step ahead of their products, across the
// barrier.
//
// An iteration begins, after its barrier, with the loads of its first fragments, whose latency is exposed. In the
// rotated loop the products of sub-step s overlap the fragment loads of s + 1. The last sub-step of an iteration waits
// for the next tile and loads its first fragments, which the next iteration takes as iter_args.
//
// Upstream's software pipelining does not move work across barriers.
//
// Left out: the loads of the first fragments of each iteration follow its barrier.
//
// Before:
//   scf.for { wait; barrier; load f0, f1; products f0; products f1; copies }
// After:
//   wait; barrier; load f0
//   scf.for iter_args(f0) { copies; load f1; products f0; wait; barrier; load next f0; products f1; yield next f0 }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @rotate_loop(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["pipeline_copies"], requires = [
        {condition = "block_k / fragment_k >= 2",
         message = "a tile must have at least two fragments along k (block_k / fragment_k)"}
      ]} {
    "tc.rotate_loop"(%module) : (!transform.any_op) -> ()

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%kernel) : (!transform.any_op) -> ()
    transform.yield
  }
}
