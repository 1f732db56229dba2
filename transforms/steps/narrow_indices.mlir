// Computes indices in 32 bits where their range allows it, which takes half the registers.
//
// An index has 64 bits, two registers, and what a kernel computes with indices hardly ever needs them: tile numbers,
// coordinates, offsets in shared memory. Bounds of loops, blocks and threads are known, and integer range analysis
// follows them through the arithmetic. The producer, which is left 24 registers when the consumers hold large
// accumulators, spills without this; the loop over tiles divides by numbers that are no powers of two, where 64 bits
// cost most.
//
// Before:
//   %row = arith.remui %place, %rows : index
// After:
//   %0 = arith.index_castui %place : index to i32
//   %row = arith.remui %0, %rows : i32

module attributes {transform.with_named_sequence} {
  transform.named_sequence @narrow_indices(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %kernels = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    %0 = transform.apply_registered_pass "expand-strided-metadata" to %kernels
      : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "lower-affine" to %0 : (!transform.any_op) -> !transform.any_op
    %2 = transform.apply_registered_pass "int-range-optimizations" to %1 : (!transform.any_op) -> !transform.any_op
    %3 = transform.apply_registered_pass "canonicalize" to %2 : (!transform.any_op) -> !transform.any_op
    %4 = transform.apply_registered_pass "arith-int-range-narrowing"
      with options = {"int-bitwidths-supported" = [32 : i64]} to %3 : (!transform.any_op) -> !transform.any_op
    %5 = transform.apply_registered_pass "canonicalize" to %4 : (!transform.any_op) -> !transform.any_op
    %6 = transform.apply_registered_pass "cse" to %5 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
