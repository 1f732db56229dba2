// Moves both products of a pair next to each other, so that their k loops become one.
//
// A gated layer combines two products of one A. After `stage_c_in_shared_memory`, the padding of the second B is
// between the products, after the view of the first result. `tile_k` fuses the loops of both products by
// `transform.loop.fuse_sibling`, which requires that the operands of both loops dominate them and that all users of
// their results follow them. Upstream's code motion hoists ops out of loops; it does not reorder the ops of a block.
//
// Before:
//   %p = linalg.matmul ins(%a_padded, %b_padded : ...) outs(%acc : tensor<128x128xf32>)
//   %p_inside = tensor.extract_slice %p[0, 0] [%rows, %columns]
//   %g_padded = tensor.pad %g_columns nofold ...
//   %q = linalg.matmul ins(%a_padded, %g_padded : ...) outs(%acc_g : tensor<128x128xf32>)
// After:
//   %g_padded = tensor.pad %g_columns nofold ...
//   %p = linalg.matmul ins(%a_padded, %b_padded : ...) outs(%acc : tensor<128x128xf32>)
//   %q = linalg.matmul ins(%a_padded, %g_padded : ...) outs(%acc_g : tensor<128x128xf32>)
//   %p_inside = tensor.extract_slice %p[0, 0] [%rows, %columns]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @gather_products(%module: !transform.any_op {transform.readonly}) {
    "tc.gather_products"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
