// Decomposes ops on tensors that are not linalg ops of one loop nest.
//
// Later steps handle structured ops: one loop nest, with indexing maps and a body. Front ends and users also write
// arithmetic on whole tensors, `linalg.softmax`, which is four loop nests, and concatenations and paddings, which
// insert slices into a tensor. An insertion becomes an elementwise op with a select, which fuses with the ops around
// it. If results of matmuls are inserted one after the other and make up all of a tensor, such as stacked heads, their
// insertions become one such op in a function of its own, and `plan_workspace` can remove its call. The same holds for
// columns, such as heads side by side, where the pipelines of matmuls write parts of buffers, and for parts of an
// argument whose memory the result takes. A slice of a part that an insertion does not change, such as the next tile of
// a loop's result, becomes a slice of the tensor before the insertion. Slices of a transposed tensor, such as the
// queries, keys and values of one projection, become transposed slices, since kernels read parts of a buffer in place,
// but not parts of a transpose. Matmuls of neighbouring slices along k whose results are added, such as the iterations
// of a loop over k, become one. Reductions that start from a constant tensor start from a fill, as those of front ends
// do. A reduction along an axis of extent 0, such as a matmul with k = 0, becomes its initial value, and tensors
// without elements are empty.
//
// Source: upstream's passes, patterns and interfaces of linalg and tensor.
//
// Before:
//   %h = arith.truncf %sums : tensor<8x32xf32> to tensor<8x32xf16>
// After:
//   %h = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
//     ins(%sums : tensor<8x32xf32>) outs(%0 : tensor<8x32xf16>) { arith.truncf }
//
// Before:
//   %z = tensor.insert_slice %y into %x[8, 0] [4, 32] [1, 1] : tensor<4x32xf16> into tensor<12x32xf16>
// After:
//   %z = linalg.generic ... ins(%x : tensor<12x32xf16>) outs(%0 : tensor<12x32xf16>) {
//     %row = arith.subi (linalg.index 0), %c8
//     %is_inside = arith.cmpi ult, %row, %c4
//     %new = tensor.extract %y[arith.select %is_inside, %row, %c0, linalg.index 1]
//     arith.select %is_inside, %new, %x_element
//   }
//
// Before:
//   %y = tensor.insert_slice %h0 into %x[0, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf16> into tensor<2x32x64xf16>
//   %z = tensor.insert_slice %h1 into %y[1, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf16> into tensor<2x32x64xf16>
// After:
//   %z = call @heads_elementwise_0(%h0, %h1) : (tensor<32x64xf16>, tensor<32x64xf16>) -> tensor<2x32x64xf16>
//   func.func private @heads_elementwise_0(...) attributes {assembles = array<i64: 0, 4096>} { ... }
//
// Before:
//   %t = linalg.transpose ins(%x : tensor<32x3x64xf16>) outs(... : tensor<3x32x64xf16>) permutation = [1, 0, 2]
//   %k = tensor.extract_slice %t[1, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<3x32x64xf16> to tensor<32x64xf16>
// After:
//   %k = tensor.extract_slice %x[0, 1, 0] [32, 1, 64] [1, 1, 1] : tensor<32x3x64xf16> to tensor<32x64xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @decompose_ops(%module: !transform.any_op {transform.readonly}) {
    %softmax = transform.structured.match ops{["linalg.softmax"]} in %module : (!transform.any_op) -> !transform.any_op
    %nests = transform.structured.decompose_interface %softmax : (!transform.any_op) -> !transform.any_op
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.tensor.decompose_concat
      transform.apply_patterns.tensor.fold_tensor_empty
    } : !transform.any_op
    %pads = transform.structured.match ops{["tensor.pad"]} in %module : (!transform.any_op) -> !transform.any_op
    %padded = transform.structured.rewrite_in_destination_passing_style %pads
      : (!transform.any_op) -> !transform.any_op
    %structured = transform.apply_registered_pass "convert-elementwise-to-linalg" to %function
      : (!transform.any_op) -> !transform.any_op
    "tc.fold_empty_ops"(%module) : (!transform.any_op) -> ()
    "tc.fill_starts"(%module) : (!transform.any_op) -> ()
    "tc.forward_slices"(%module) : (!transform.any_op) -> ()
    "tc.join_products"(%module) : (!transform.any_op) -> ()
    "tc.transpose_slices"(%module) : (!transform.any_op) -> ()
    "tc.assemble_parts"(%module) {columns = 1 : i64, knobs = {columns = "1 if columns else 0"}}
      : (!transform.any_op) -> ()
    "tc.select_inserted_slices"(%module) : (!transform.any_op) -> ()
    // Bodies compute their indices once, and tensors whose insertions are gone go too.
    %functions = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_cse to %functions : !transform.any_op
    transform.yield
  }
}
