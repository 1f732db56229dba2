// Lowers the copies' transfers to plain vector loads and stores, and states that they are aligned to 16 bytes.
//
// Without the alignment LLVM must assume that of one element and takes a 128-bit access apart into eight. It holds: a
// run starts at a multiple of eight f16 in a row, rows are multiples of eight elements apart, and buffers from the
// driver start on 256 bytes. Loads and stores that already state an alignment keep it: a thread's pairs of sums.
//
// Before:
//   %0 = vector.transfer_read %A[%i, %k] {in_bounds = [true]} : memref<512x512xf16>, vector<8xf16>
// After:
//   %0 = vector.load %A[%i, %k] {alignment = 16} : memref<512x512xf16>, vector<8xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_transfers(%module: !transform.any_op {transform.readonly}) {
    %eights = transform.structured.match ops{["vector.load", "vector.store"]} attributes {alignment = 8 : i64}
      in %module : (!transform.any_op) -> !transform.any_op
    %fours = transform.structured.match ops{["vector.load", "vector.store"]} attributes {alignment = 4 : i64}
      in %module : (!transform.any_op) -> !transform.any_op
    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Two-dimensional ones are left only where sums stay in memory: the zeros that C = AB starts from there.
    transform.apply_patterns to %kernel {
      transform.apply_patterns.vector.transfer_to_scf max_transfer_rank = 1 full_unroll = true
    } : !transform.any_op
    transform.apply_patterns to %kernel {
      transform.apply_patterns.vector.lower_transfer max_transfer_rank = 1
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    %accesses = transform.structured.match ops{["vector.load", "vector.store"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %bytes = transform.param.constant 16 : i64 -> !transform.param<i64>
    transform.annotate %accesses "alignment" = %bytes : !transform.any_op, !transform.param<i64>
    %eight = transform.param.constant 8 : i64 -> !transform.param<i64>
    transform.annotate %eights "alignment" = %eight : !transform.any_op, !transform.param<i64>
    %four = transform.param.constant 4 : i64 -> !transform.param<i64>
    transform.annotate %fours "alignment" = %four : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
