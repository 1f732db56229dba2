// Loads transposed blocks of 16-bit elements as words of 32 bits.
//
// The hardware transposes blocks of 32-bit elements only, and gives a lane a row of the block. Two adjacent 16-bit
// elements form a word, so that the words of a row hold its elements. A column-major A, and a transposed tile, then
// need no shared local memory. MLIR's own pass loads a column-major B in this way, but no other operand.
//
// Source: the transposing reads of the OpenCL C extension cl_intel_subgroup_2d_block_io.
//
// Before:
//   %desc = xegpu.create_nd_tdesc %A : memref<48x40xf16> -> !xegpu.tensor_desc<16x16xf16>
//   %a = xegpu.load_nd %desc[%k, %i] <{transpose = ...}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
// After:
//   %desc = xegpu.create_nd_tdesc %address, shape : [48, 20], strides : [20, 1] : i64 -> !xegpu.tensor_desc<16x8xi32>
//   %w = xegpu.load_nd %desc[%k, %i / 2] <{transpose = ...}> : !xegpu.tensor_desc<16x8xi32> -> vector<8xi32>
//   %a = vector.bitcast %w : vector<8xi32> to vector<16xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @transpose_by_words(%module: !transform.any_op {transform.readonly}) {
    "tc.transpose_by_words"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
