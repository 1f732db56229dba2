// Merges a pair of products of one A into one matmul, with the tiles of both B side by side in shared memory.
//
// A gated layer multiplies one A by two matrices, and stores an elementwise function of both products: SwiGLU and GeGLU
// are D = act(AB) * AC. One kernel loads the tile of A once for both products, and writes neither product to memory.
// Earlier steps treat the products as two ops. This step makes the tiles of both B the halves of one tile along n, and
// the accumulators the halves of one accumulator: one `wgmma` of twice as many columns multiplies both, and all later
// steps see one product. A thread holds the same positions of both halves, so that the epilogue combines them in
// registers. Each half of the tile is loaded from its own matrix.
//
// Source: dual GEMM in CUTLASS (example 45), which has two accumulators; here they are halves of one.
//
// Before:
//   linalg.copy {operand_b} ins(%b_tile : ...) outs(%shared_b : memref<64x128xf16, #gpu.address_space<workgroup>>)
//   linalg.matmul ins(%shared_a, %shared_b : ...) outs(%acc : memref<128x128xf32, #gpu.address_space<workgroup>>)
//   ... the same for the second B, to %shared_g and %acc_g ...
//   linalg.generic ins(%acc, %acc_g : ...) outs(%c_tile : ...) { ... }
// After:
//   %shared_b = memref.subview %shared[0, 0] [64, 128] : memref<64x256xf16, #gpu.address_space<workgroup>> to ...
//   %shared_g = memref.subview %shared[0, 128] [64, 128]
//   linalg.copy {operand_b} ins(%b_tile : ...) outs(%shared_b : ...)
//   linalg.copy {operand_b} ins(%g_tile : ...) outs(%shared_g : ...)
//   linalg.matmul ins(%shared_a, %shared : ...) outs(%accs : memref<128x256xf32, #gpu.address_space<workgroup>>)
//   linalg.generic ins(%acc, %acc_g : ...) outs(%c_tile : ...) { ... }      // views of the halves of %accs

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @merge_products(%module: !transform.any_op {transform.readonly})
      attributes {when = "products == 2", requires = [
        {condition = "b_layout == 'column' or block_n * b_bits % 512 == 0 or block_n * b_bits == 256",
         message = "rows of a row-major tile of B must be 32 or a multiple of 64 bytes for a pair of products"},
        {condition = "2 * block_n <= 256",
         message = "block_n must be at most 128 for a pair of products, which one wgmma computes"}
      ]} {
    "tc.merge_products"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
