// Narrows index arithmetic to 32 bits where its range allows, which halves its registers.
//
// An index has 64 bits and occupies two registers, but tile indices, coordinates and offsets in shared memory fit in 32
// bits. Integer range analysis propagates the known loop bounds and the known sizes of grid and block through the
// arithmetic. Without this step the producer warpgroup spills, since it has 24 registers per thread if consumers hold
// large accumulators. The tile scheduler divides by extents that are not powers of two, where 64-bit arithmetic costs
// most.
//
// Left out: indices stay 64 bits wide, and the producer warpgroup may spill.
//
// Before:
//   %row = arith.remui %tile, %rows : index
// After:
//   %0 = arith.index_castui %tile : index to i32
//   %row = arith.remui %0, %rows : i32

module attributes {transform.with_named_sequence} {
  transform.named_sequence @narrow_indices(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %kernels = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    // Range analysis follows arithmetic, not affine maps or views.
    %0 = transform.apply_registered_pass "expand-strided-metadata" to %kernels
      : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "lower-affine" to %0 : (!transform.any_op) -> !transform.any_op
    %2 = transform.apply_registered_pass "int-range-optimizations" to %1 : (!transform.any_op) -> !transform.any_op
    %3 = transform.apply_registered_pass "canonicalize" to %2 : (!transform.any_op) -> !transform.any_op
    // Narrows an op only where the analysis proves that 32 bits hold its operands and results.
    %4 = transform.apply_registered_pass "arith-int-range-narrowing"
      with options = {"int-bitwidths-supported" = [32 : i64]} to %3 : (!transform.any_op) -> !transform.any_op
    // Upstream also narrows sums and products from 2^31 to 2^32, as offsets in a large C are, and keeps their flag
    // `nsw`, which then no longer holds. LLVM infers the flags again where they hold.
    %none = transform.param.constant #arith.overflow<none> -> !transform.any_param
    transform.foreach %4 : !transform.any_op {
    ^bb0(%each: !transform.any_op):
      %narrow = transform.structured.match ops{["arith.addi", "arith.muli", "arith.subi", "arith.shli"]}
        filter_result_type = i32 in %each : (!transform.any_op) -> !transform.any_op
      transform.annotate %narrow "overflowFlags" = %none : !transform.any_op, !transform.any_param
    }
    %5 = transform.apply_registered_pass "canonicalize" to %4 : (!transform.any_op) -> !transform.any_op
    %6 = transform.apply_registered_pass "cse" to %5 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
