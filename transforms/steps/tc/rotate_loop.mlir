// Loads fragments one k sub-step ahead of the products that use them, across the barrier too.
//
// Behind the barrier of an iteration stand the loads of its first fragments, with nothing to hide them. Rotated by one
// sub-step, the products of sub-step s run while the fragments of s + 1 arrive, and the last sub-step of an iteration
// waits for the next tile and loads its first fragments, which travel to the next iteration as iter_args.
//
// Upstream's software pipelining leaves barriers where they are; no op of it rotates a loop across one.
//
// Before:
//   scf.for { wait; barrier; load f0, f1; products f0; products f1; copies }
// After:
//   wait; barrier; load f0
//   scf.for iter_args(f0) { copies; load f1; products f0; wait; barrier; load next f0; products f1; yield next f0 }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @rotate_loop(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["pipeline_copies"], requires = [
        {condition = "block_k / fragment_k >= 2",
         message = "a tile must hold at least two fragments along k (block_k / fragment_k)"}
      ]} {
    "tc.rotate_loop"(%module) : (!transform.any_op) -> ()

    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %kernel {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %kernel : !transform.any_op
    transform.yield
  }
}
