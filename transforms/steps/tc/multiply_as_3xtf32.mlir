// Multiplies f32 by three products of tf32 each, with the accuracy of f32.
//
// Tensor cores read the first 11 bits of an f32 significand (tf32), which makes errors of 2^-10. The step splits each
// element of the fragments into its first 11 bits, rounded to nearest, and the remaining 12 bits: a = a1 + a2, and b
// likewise. Then ab = a2 b1 + a1 b2 + a1 b1, up to a2 b2, which is below 2^-22 of ab. The operands are split in
// registers, which takes no shared memory, and a fragment is split once for all of its products.
//
// Tensor cores truncate sums, whereas other units round to nearest, so that the error of a long sum in one accumulator
// grows with k. Therefore the three products of a k sub-step are accumulated from zero, the small ones first, and an
// f32 addition adds them to the accumulator.
//
// An infinity becomes NaN, and so does a value of 3.4026e38 or more, whose first 11 bits round to an infinity. A split
// that keeps them (`split_into_tf32`) would take twice as many ops; `recompute_nan_tiles` repeats the products with it
// only where a sum is NaN.
//
// The step runs after `interleave_copies`, which counts the products of a fragment as one. It does not change products
// of other types, nor products that `allow_tf32` marks as tf32.
//
// Source: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
// theoretical peak performance", 2022; known as 3xTF32 in CUTLASS and as `tf32x3` in Triton.
//
// Before:
//   %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>)
//       -> vector<2x2xf32>
// After:
//   %bits = arith.bitcast %a : vector<4x1xf32> to vector<4x1xi32>
//   %rounded = arith.andi (arith.addi %bits, 0x1000), 0xffffe000
//   %a1 = arith.bitcast %rounded : vector<4x1xi32> to vector<4x1xf32>
//   %a2 = arith.subf %a, %a1
//   ... the same for B ...
//   %0 = nvgpu.mma.sync(%a2, %b1, %zero) {mmaShape = [16, 8, 8], tf32Enabled}
//   %1 = nvgpu.mma.sync(%a1, %b2, %0) {mmaShape = [16, 8, 8], tf32Enabled}
//   %2 = nvgpu.mma.sync(%a1, %b1, %1) {mmaShape = [16, 8, 8], tf32Enabled}
//   %d = arith.addf %c, %2

module attributes {transform.with_named_sequence} {
  transform.named_sequence @multiply_as_3xtf32(%module: !transform.any_op {transform.readonly}) {
    "tc.multiply_as_3xtf32"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
