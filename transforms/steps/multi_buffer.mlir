// Allocates `stages` shared-memory stages for each tile, which the iterations of the k loop use in rotation.
//
// With two stages, the copies of the next tile write to the stage that no warp reads. The barrier after the products is
// then redundant, and the step removes it: one barrier per iteration suffices, and a warp can run almost one iteration
// ahead of another. The stages cost shared memory. With stages = 1 the step changes nothing.
//
// Left out: there is one stage (`left_out`), and each iteration has two barriers.
//
// Source: beyond CC'22, which has one stage and two barriers.
//
// Before:
//   %shared_a = memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>
// After, with stages = 2:
//   %shared_a = memref.alloc() {operand_a} : memref<2x128x40xf16, #gpu.address_space<workgroup>>
//   scf.for %k = ... {
//     %stage = affine.apply (%k floordiv 32) mod 2
//     ... copies, barrier, products, no second barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence @multi_buffer(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["vectorize_copies"], left_out = {stages = 1 : i64}} {
    %a = transform.structured.match ops{["memref.alloc"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.op<"memref.alloc">
    %b = transform.structured.match ops{["memref.alloc"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.op<"memref.alloc">
    %tiles = transform.merge_handles %a, %b : !transform.op<"memref.alloc">
    // skip_analysis: upstream looks for one op that overwrites a tile before it is read, and here all threads of the
    // block do so together.
    %stages = transform.memref.multibuffer %tiles {factor = 2 : i64, skip_analysis, knobs = {factor = "stages"}}
      : (!transform.op<"memref.alloc">) -> !transform.any_op

    transform.tune.alternatives<"stages"> selected_region = 1
        attributes {knobs = {selected_region_attr = "stages > 1"}} {
    }, {
      %barriers = transform.structured.match ops{["gpu.barrier"]} in %module : (!transform.any_op) -> !transform.any_op
      // In program order: the barrier after the copies remains, the one after the products is redundant.
      %after_copies, %after_products = transform.split_handle %barriers
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      // No upstream transform op erases a payload op. A wait for no tokens replaces the barrier, and canonicalization
      // removes it.
      %erased = transform.structured.replace %after_products {
        gpu.wait
      } : (!transform.any_op) -> !transform.any_op
    }

    // Accesses index the multi-staged allocation directly, not through a view of the current stage.
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
