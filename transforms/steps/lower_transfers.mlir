// Lowers vector transfers to vector loads and stores with 16-byte alignment.
//
// Without an alignment LLVM assumes that of one element and splits a 128-bit access into scalar accesses. The alignment
// holds: a vector starts at a multiple of 16 bytes in a row, rows are multiples of 16 bytes long, and device
// allocations are aligned to 256 bytes. Loads and stores that state a smaller alignment keep it: the accumulator pairs
// of `convert_to_mma_sync`, the accesses that `lower_masked_copies` creates, and writes of narrow elements.
//
// Before:
//   %0 = vector.transfer_read %A[%i, %k] {in_bounds = [true]} : memref<512x512xf16>, vector<8xf16>
// After:
//   %0 = vector.load %A[%i, %k] {alignment = 16} : memref<512x512xf16>, vector<8xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_transfers(%module: !transform.any_op {transform.readonly}) {
    // Ops that state an alignment before this step, found by value: the general one below must not overwrite it.
    %eights = transform.structured.match ops{["vector.load", "vector.store"]} attributes {alignment = 8 : i64}
      in %module : (!transform.any_op) -> !transform.any_op
    %fours = transform.structured.match ops{["vector.load", "vector.store"]} attributes {alignment = 4 : i64}
      in %module : (!transform.any_op) -> !transform.any_op
    %twos = transform.structured.match ops{["vector.load", "vector.store"]} attributes {alignment = 2 : i64}
      in %module : (!transform.any_op) -> !transform.any_op
    %ones = transform.structured.match ops{["vector.load", "vector.store"]} attributes {alignment = 1 : i64}
      in %module : (!transform.any_op) -> !transform.any_op
    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Two-dimensional transfers remain only where accumulators are in memory: the zeros that initialize them for C =
    // AB.
    transform.apply_patterns to %kernel {
      transform.apply_patterns.vector.transfer_to_scf max_transfer_rank = 1 full_unroll = true
    } : !transform.any_op
    transform.apply_patterns to %kernel {
      transform.apply_patterns.vector.lower_transfer max_transfer_rank = 1
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %kernel : !transform.any_op
    // All accesses get 16 bytes, then those found above get their own alignment back.
    %accesses = transform.structured.match ops{["vector.load", "vector.store"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %bytes = transform.param.constant 16 : i64 -> !transform.param<i64>
    transform.annotate %accesses "alignment" = %bytes : !transform.any_op, !transform.param<i64>
    %eight = transform.param.constant 8 : i64 -> !transform.param<i64>
    transform.annotate %eights "alignment" = %eight : !transform.any_op, !transform.param<i64>
    %four = transform.param.constant 4 : i64 -> !transform.param<i64>
    transform.annotate %fours "alignment" = %four : !transform.any_op, !transform.param<i64>
    %two = transform.param.constant 2 : i64 -> !transform.param<i64>
    transform.annotate %twos "alignment" = %two : !transform.any_op, !transform.param<i64>
    %one = transform.param.constant 1 : i64 -> !transform.param<i64>
    transform.annotate %ones "alignment" = %one : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
