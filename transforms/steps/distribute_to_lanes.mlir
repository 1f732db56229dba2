// Distributes the vectors of a subgroup to its 16 lanes.
//
// A lane holds a column of each block, which is the layout of the 2D block messages and of the matrix instruction.
// 16-bit elements of B are loaded with two rows packed into a 32-bit register, as the instruction takes them.
//
// Source: the passes xegpu-propagate-layout, xegpu-optimize-peephole and xegpu-sg-to-lane-distribute of MLIR.
//
// Before:
//   %b = xegpu.load_nd %desc[%k, %j] : !xegpu.tensor_desc<16x16xf16, ...> -> vector<16x16xf16>
//   %d = xegpu.dpas %a, %b, %acc : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32>
// After:
//   %b = xegpu.load_nd %desc[%k, %j] {packed} : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
//   %d = xegpu.dpas %a, %b, %acc : vector<8xf16>, vector<16xf16>, vector<8xf32>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @distribute_to_lanes(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "a_type in ['f16', 'bf16'] and acc_bits == 32",
         message = "A and B must be f16 or bf16, with f32 accumulators: other types have no subgroup layout"}
      ]} {
    %code = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    %laid_out = transform.apply_registered_pass "xegpu-propagate-layout" with options = {"layout-kind" = "lane"}
      to %code : (!transform.any_op) -> !transform.any_op
    // The peephole pass changes loads whose vectors are transposed, and with them the layouts.
    %better = transform.apply_registered_pass "xegpu-optimize-peephole" to %laid_out
      : (!transform.any_op) -> !transform.any_op
    %again = transform.apply_registered_pass "xegpu-propagate-layout" with options = {"layout-kind" = "lane"}
      to %better : (!transform.any_op) -> !transform.any_op
    %lanes = transform.apply_registered_pass "xegpu-sg-to-lane-distribute" to %again
      : (!transform.any_op) -> !transform.any_op
    %folded = transform.apply_registered_pass "canonicalize" to %lanes : (!transform.any_op) -> !transform.any_op
    %shared = transform.apply_registered_pass "cse" to %folded : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
