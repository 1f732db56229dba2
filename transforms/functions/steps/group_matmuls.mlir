// Brings independent matmuls of a function together, so that each group becomes one launch.
//
// The experts of a mixture, or the queries, keys and values of an attention, do not depend on each other. Each alone
// may have fewer tiles than the GPU has multiprocessors. The matmuls of a group have the same element types and
// layouts, and the same number of matmuls before them on the longest path from an argument; their sizes may differ. A
// pipeline of matmuls then lowers all of them with the same knobs, and `merge_launches` merges their kernels into one.
//
// Buffers that a group reads or writes stay live throughout the group, so that `plan_workspace` does not give two of
// them the same memory.
//
// Upstream has no op that groups calls.
//
// Before:
//   %h0 = call @moe_matmul_0(%x0, %w0)
//   %y0 = call @moe_matmul_1(%h0, %v0)
//   %h1 = call @moe_matmul_2(%x1, %w1)
//   %y1 = call @moe_matmul_3(%h1, %v1)
// After: @moe_matmul_0 and @moe_matmul_2 have the attribute group = 0, the others group = 1
//   %h0 = call @moe_matmul_0(%x0, %w0)
//   %h1 = call @moe_matmul_2(%x1, %w1)
//   %y0 = call @moe_matmul_1(%h0, %v0)
//   %y1 = call @moe_matmul_3(%h1, %v1)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @group_matmuls(%module: !transform.any_op {transform.readonly}) {
    "tc.group_matmuls"(%module) {at_most = 32 : i64} : (!transform.any_op) -> ()
    transform.yield
  }
}
