// Maps the parallel loop over tiles of C to the grid of a kernel launch.
//
// Block (x, y) computes the tile in column x and row y of C. Blocks that run concurrently are mostly neighbours in a
// row of tiles and share rows of A through the L2 cache. The step hoists the allocations of shared tiles out of the k
// loop.
//
// Source: CC'22, section 3.6.
//
// Before:
//   scf.forall (%i, %j) in (4, 4) { ... } {mapping = [#gpu.block<y>, #gpu.block<x>]}
// After:
//   gpu.launch blocks(...) in (4, 4, 1) threads(...) in (1, 1, 1) {
//     %j = gpu.block_id x
//     %i = gpu.block_id y

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_to_blocks(%module: !transform.any_op {transform.readonly}) {
    // A function that the host calls besides the launch has no such loop.
    %tiles = transform.structured.match ops{["scf.forall"]} in %module : (!transform.any_op) -> !transform.any_op
    %functions = transform.get_parent_op %tiles {op_name = "func.func", deduplicate}
      : (!transform.any_op) -> !transform.any_op
    %loops = transform.split_handle %functions {pass_through_empty_handle = false}
      : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %loops generate_gpu_launch : (!transform.any_op) -> !transform.any_op
    // The allocations do not depend on k: a block allocates its shared tiles once.
    %hoisted = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.bufferization.buffer_loop_hoisting %hoisted : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
