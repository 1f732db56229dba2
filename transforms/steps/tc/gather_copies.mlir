// Moves the copies of a pair's tiles before both products, so that one barrier covers them.
//
// Two products of one A (`tile_k`) have one loop over k, in which the tile of the second B is copied after the first
// product. A barrier follows the copies, and another one the products; copies between the products would need further
// barriers. After this step the products are adjacent, and `map_matmul_to_warps` fuses them into one loop over warps: a
// warp computes the same part of both products, loads each fragment of A once, and keeps both accumulators in
// registers, which the op that combines the products reads.
//
// `wgmma` has `merge_products` instead, which merges them into one product of twice as many columns for each warpgroup.
// On `mma_sync` warps share the columns of a block: with the tiles of both B side by side, a warp would have columns of
// one product only.
//
// Source: dual GEMM in CUTLASS (example 45), whose warps have an accumulator for each product.
//
// Before:
//   linalg.copy {operand_a} ins(%a_tile : ...) outs(%shared_a : ...)
//   linalg.copy {operand_b} ins(%b_tile : ...) outs(%shared_b : ...)
//   %p = linalg.matmul ins(%a, %b : tensor<128x32xf16>, tensor<32x64xf16>) outs(%acc : tensor<128x64xf32>)
//   linalg.copy {operand_b} ins(%g_tile : ...) outs(%shared_g : ...)
//   %q = linalg.matmul ins(%a, %g : tensor<128x32xf16>, tensor<32x64xf16>) outs(%acc_g : tensor<128x64xf32>)
// After:
//   linalg.copy {operand_a} ins(%a_tile : ...) outs(%shared_a : ...)
//   linalg.copy {operand_b} ins(%b_tile : ...) outs(%shared_b : ...)
//   linalg.copy {operand_b} ins(%g_tile : ...) outs(%shared_g : ...)
//   %p = linalg.matmul ins(%a, %b : tensor<128x32xf16>, tensor<32x64xf16>) outs(%acc : tensor<128x64xf32>)
//   %q = linalg.matmul ins(%a, %g : tensor<128x32xf16>, tensor<32x64xf16>) outs(%acc_g : tensor<128x64xf32>)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @gather_copies(%module: !transform.any_op {transform.readonly}) {
    "tc.gather_products"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
