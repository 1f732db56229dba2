// Brings independent elementwise ops of a function together, so that each group is one launch.
//
// A decoding step rotates its queries and its keys, and writes its values to a cache: ops of a few thousand elements,
// each of which takes as long as a launch. Calls that follow each other without another kernel between them, and that
// do not depend on each other, are a group. After this pipeline, `merge_launches` merges their kernels into one.
//
// Buffers that a group reads or writes live as long as all of the group, so that `plan_workspace` does not share them.
//
// Upstream has no op that groups calls.
//
// Before:
//   %q1 = call @step_elementwise_0(%q0, %cos)
//   %k1 = call @step_elementwise_1(%k0, %cos)
//   %keys = call @step_elementwise_2(%k1, %cache)
//   %values = call @step_elementwise_3(%v0, %other)
// After: @step_elementwise_0, @step_elementwise_1 and @step_elementwise_3 have the attribute group = 0
//   %q1 = call @step_elementwise_0(%q0, %cos)
//   %k1 = call @step_elementwise_1(%k0, %cos)
//   %values = call @step_elementwise_3(%v0, %other)
//   %keys = call @step_elementwise_2(%k1, %cache)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @group_elementwise(%module: !transform.any_op {transform.readonly}) {
    "tc.group_elementwise"(%module) {at_most = 8 : i64} : (!transform.any_op) -> ()
    transform.yield
  }
}
