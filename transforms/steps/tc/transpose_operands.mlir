// Copies operands in a layout that `wgmma` cannot read to transposed workspaces.
//
// `wgmma` supports both K-major and MN-major operands for 16-bit elements, but only K-major operands for elements of 8
// and 32 bits: a row-major A and a column-major B. An operand in the other layout is copied once to its transpose. The
// copy reads and writes each element once, while the matmul reads it many times. The row pitch of the copy is a
// multiple of 128 bytes, as in `repack_operands`, so that TMA accepts it for every k.
//
// `map_repacking_to_threads` maps the copies to a kernel. From here on, the facts of the payload are those of the
// copies.
//
// Source: PTX ISA, wgmma.mma_async: "imm-trans" is for 16-bit types.
//
// Before:
//   %b = bufferization.to_tensor %B restrict : memref<4096x8192xi8> to tensor<4096x8192xi8>
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)
// After:
//   %transposed = memref.transpose %B (k, n) -> (n, k)
//   %alloc = memref.alloc() {workspace} : memref<8192x4096xi8>
//   %matrix = memref.subview %alloc[0, 0] [8192, 4096] [1, 1]
//   memref.copy %transposed, %matrix {workspace}
//   %b = bufferization.to_tensor %matrix restrict : ... to tensor<8192x4096xi8>
//   %d = linalg.matmul indexing_maps = [..., (m, n, k) -> (n, k), ...] ins(%a, %b : ...) outs(%c : ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @transpose_operands(%module: !transform.any_op {transform.readonly})
      attributes {facts = {
        a_transposed = "1 if a_bits != 16 and a_layout == 'column' else 0",
        b_transposed = "1 if b_bits != 16 and b_layout == 'row' else 0",
        a_layout = "a_layout if a_bits == 16 else 'row'",
        b_layout = "b_layout if b_bits == 16 else 'column'"
      }} {
    "tc.transpose_operands"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
