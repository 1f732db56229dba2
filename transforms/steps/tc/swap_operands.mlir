// Exchanges the operands: computes the transpose of C, as C^T = B^T A^T.
//
// A `wgmma` instruction has 64 rows, and columns in multiples of 8. A problem with few rows, as in the decoding phase
// of a language model, fills only a fraction of the 64 rows. With swapped operands, its rows become columns, in
// multiples of 8, and the many columns of C fill the 64 rows. No shared memory is spent on rows beyond the matrix, so
// that more stages fit. The same holds for a number of rows just above a multiple of 64.
//
// No matrix is copied: TMA and `wgmma` read row-major and column-major operands alike, which the indexing maps of the
// matmul state, and C is written through a transposed view, whose columns are contiguous. Elementwise ops on the
// product are transposed too: a per-row bias becomes a per-column bias, a matrix is read in transposed order, and each
// result gets a transposed view. Expressions of all steps use the sizes and layouts of the swapped product (`facts`).
// Each matmul of a batch is swapped. Where m and n are just above a multiple of 64, swapping decides which of them is
// padded to 64 rows: a C of 272 x 328 fills tiles of 192 x 192 that have 1.65 times its elements, and swapped tiles of
// 192 x 136 that have 1.17 times.
//
// Source: the identity. cuBLAS runs kernels with tiles of 64x8 and 64x24 for such problems, by their names in a
// profile.
//
// Before:
//   %product = linalg.matmul ins(%a, %b : tensor<8x128xf16>, tensor<128x256xf16>) outs(%c : tensor<8x256xf32>)
//   bufferization.materialize_in_destination %product in restrict writable %C
// After:
//   %C_T = memref.transpose %C (i, j) -> (j, i) : memref<8x256xf32> to memref<256x8xf32, strided<[1, 256]>>
//   %product = linalg.matmul indexing_maps = [(m, n, k) -> (k, m), (m, n, k) -> (n, k), (m, n, k) -> (m, n)]
//     ins(%b, %a : tensor<128x256xf16>, tensor<8x128xf16>) outs(%c : tensor<256x8xf32>)
//   bufferization.materialize_in_destination %product in restrict writable %C_T
//
// Before, with an elementwise op:
//   %c = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (j), (i, j) -> (i, j)], ...}
//     ins(%product, %bias : tensor<8x256xf32>, tensor<256xf32>) outs(%c_in : tensor<8x256xf32>)
// After:
//   %c = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (i), (i, j) -> (i, j)], ...}
//     ins(%product, %bias : tensor<256x8xf32>, tensor<256xf32>) outs(%c_in : tensor<256x8xf32>)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @swap_operands(%module: !transform.any_op {transform.readonly})
      attributes {facts = {
        m = "n", n = "m", a_matrices = "b_matrices", b_matrices = "a_matrices",
        a_layout = "'row' if b_layout == 'column' else 'column'",
        b_layout = "'row' if a_layout == 'column' else 'column'",
        a_type = "b_type", b_type = "a_type", a_bits = "b_bits", b_bits = "a_bits",
        a_source_bits = "b_source_bits", b_source_bits = "a_source_bits",
        c_layout = "'column'"
      }, requires = [
        {condition = "tile_scheduler == 'data_parallel'",
         message = "swap_operands requires tile_scheduler = data_parallel"},
        {condition = "batch_strides == 1",
         message = "swap_operands requires matmuls of a batch that are one stride apart in C"},
        {condition = "products == 1", message = "swap_operands requires a single product, not a pair"},
        {condition = "reductions == 0",
         message = "swap_operands does not support reductions of the product"}
      ]} {
    "tc.swap_operands"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
