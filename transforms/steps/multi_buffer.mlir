// Gives each shared tile `buffers` places, used in turn by successive iterations of the k loop.
//
// With two, the copy of the next tile goes to the place that nobody reads, so one barrier an iteration is enough: the
// one behind the products goes, and warps may run ahead of each other by almost an iteration. The price is shared
// memory. With one, nothing changes.
//
// Source: beyond CC'22, which keeps one buffer and two barriers.
//
// Before:
//   %shared_a = memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>
// After, with buffers = 2:
//   %shared_a = memref.alloc() {operand_a} : memref<2x128x40xf16, #gpu.address_space<workgroup>>
//   scf.for %k = ... {
//     %place = affine.apply (%k floordiv 32) mod 2
//     ... copies, the barrier behind them, products, no barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence @multi_buffer(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["vectorize_copies"], left_out = {stages = 1 : i64}} {
    %tiles = transform.structured.match ops{["memref.alloc"]} in %module
      : (!transform.any_op) -> !transform.op<"memref.alloc">
    %places = transform.memref.multibuffer %tiles {factor = 2 : i64, skip_analysis, knobs = {factor = "stages"}}
      : (!transform.op<"memref.alloc">) -> !transform.any_op

    transform.tune.alternatives<"stages"> selected_region = 1
        attributes {knobs = {selected_region_attr = "stages > 1"}} {
    }, {
      %barriers = transform.structured.match ops{["gpu.barrier"]} in %module : (!transform.any_op) -> !transform.any_op
      %behind_copies, %behind_products = transform.split_handle %barriers
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      // No transform op erases another op. A wait for nothing takes the barrier's place, and canonicalization drops it.
      %nothing = transform.structured.replace %behind_products {
        gpu.wait
      } : (!transform.any_op) -> !transform.any_op
    }
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
