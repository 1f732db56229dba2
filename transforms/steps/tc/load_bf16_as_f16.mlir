// Reads the bf16 operands of products as f16, for which the gpu dialect has fragments.
//
// WMMA multiplies bf16 from sm_80 on, but upstream's fragments (`!gpu.mma_matrix`) and their loads take no bf16. The
// step casts the tiles of A and B to f16 and marks the products `of_bf16`: no element is converted, only its bits are
// reinterpreted. Intermediate steps move fragments without depending on their type, and `multiply_as_bf16` turns the
// marked products and the loads of their operands into bf16 instructions. The step does not change products of other
// types.
//
// Before:
//   %a = vector.transfer_read %shared_a[...] : memref<2x128x40xbf16, ...>, vector<16x16xbf16>
//   %d = vector.contract ... %a, %b, %c : vector<16x16xbf16>, vector<16x16xbf16> into vector<16x16xf32>
// After:
//   %halves = builtin.unrealized_conversion_cast %shared_a : memref<2x128x40xbf16, ...> to memref<2x128x40xf16, ...>
//   %a = vector.transfer_read %halves[...] : memref<2x128x40xf16, ...>, vector<16x16xf16>
//   %d = vector.contract {of_bf16} ... %a, %b, %c : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @load_bf16_as_f16(%module: !transform.any_op {transform.readonly}) {
    "tc.load_bf16_as_f16"(%module) : (!transform.any_op) -> ()
    transform.apply_cse to %module : !transform.any_op
    transform.yield
  }
}
