// Copies the tiles of A and B of one k step into shared memory, zeros where a tile hangs over the edge.
//
// `stage_c_in_shared_memory` padded A and B to whole tiles, before the reduction was split; here the padding moves into
// the k loop, tile by tile, and becomes a copy to a tile in the workgroup address space. The matrix units then always
// multiply whole tiles, of static shapes: only the copies know about edges, and where the tiles divide the problem
// nobody does. The zeros that fill up a tile add nothing to the sums.
//
// Differs from `stage_in_shared_memory` in that it finds the copies there, as paddings, and need not make them. The
// marks `operand_a` and `operand_b` are the same, on the allocations and on the copies.
//
// Source: CC'22, section 3.2, for problems that tiles divide; padding is upstream's.
//
// Before, with m = n = k = 1000 and tiles of 128x256x64:
//   %a_padded = tensor.pad %a_rows nofold high[128 - %rows, 24] : tensor<?x1000xf16> to tensor<128x1024xf16>
//   scf.for %k = 0 to 1024 step 64 iter_args(%c = ...) {
//     %a_tile = tensor.extract_slice %a_padded[0, %k] [128, 64]
//     linalg.matmul ins(%a_tile, %b_tile : tensor<128x64xf16>, tensor<64x256xf16>) outs(%c : ...)
// After:
//   scf.for %k = 0 to 1024 step 64 iter_args(%c = ...) {
//     %depth = affine.min(1000 - %k, 64)
//     %a_tile = tensor.extract_slice %a_rows[0, %k] [%rows, %depth]
//     %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #gpu.address_space<workgroup>>
//     linalg.fill ins(0) outs(%shared_a)
//     %inside = memref.subview %shared_a[0, 0] [%rows, %depth]
//     linalg.copy {operand_a} ins(%a_tile : ...) outs(%inside : ...)
//     ... the same for B ...
//     linalg.matmul ins(%staged_a, %staged_b : ...) outs(%c : ...)
// With tiles that divide, neither the fill nor the subview, and copies of static shapes.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @stage_operands_in_shared_memory(%module: !transform.any_op {transform.readonly}) {
    // Each k step pads its own tiles. A reduction of one step has no loop, and the paddings stay where they are.
    %k_loops = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %k_loops : !transform.any_op {
    ^bb0(%k_loop: !transform.any_op):
      %step = transform.structured.match ops{["linalg.matmul"]} in %k_loop : (!transform.any_op) -> !transform.any_op
      %a_slice = transform.get_producer_of_operand %step[0] : (!transform.any_op) -> !transform.any_op
      %a_padding = transform.get_producer_of_operand %a_slice[0] : (!transform.any_op) -> !transform.any_op
      %b_slice = transform.get_producer_of_operand %step[1] : (!transform.any_op) -> !transform.any_op
      %b_padding = transform.get_producer_of_operand %b_slice[0] : (!transform.any_op) -> !transform.any_op
      %a_tile, %with_a = transform.structured.fuse_into_containing_op %a_padding into %k_loop
        : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
      %b_tile, %with_both = transform.structured.fuse_into_containing_op %b_padding into %with_a
        : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    }

    // Fusion guards against tiles that lie in the padding altogether. There are none: the grid and the k loop end with
    // the last tile that has an element of C, or of A and B.
    %guards = transform.structured.match ops{["scf.if"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.scf.take_assumed_branch %guards take_else_branch : (!transform.any_op) -> ()
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %tensors {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
    } : !transform.any_op

    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %a = transform.get_producer_of_operand %matmul[0] : (!transform.any_op) -> !transform.any_op
    %a_buffer, %a_ops = transform.structured.bufferize_to_allocation %a {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %a_copy = transform.select "linalg.copy" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_copy "operand_a" : !transform.any_op
    %a_alloc = transform.select "memref.alloc" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_alloc "operand_a" : !transform.any_op

    %b = transform.get_producer_of_operand %matmul[1] : (!transform.any_op) -> !transform.any_op
    %b_buffer, %b_ops = transform.structured.bufferize_to_allocation %b {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %b_copy = transform.select "linalg.copy" in %b_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %b_copy "operand_b" : !transform.any_op
    %b_alloc = transform.select "memref.alloc" in %b_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %b_alloc "operand_b" : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
