// Stages the tiles of A and B of one k step in shared memory, zero-filled beyond the edges of A and B.
//
// `stage_c_in_shared_memory` padded A and B to whole tiles before the reduction was tiled. This step moves the padding
// into the k loop, one tile at a time, and converts it to a copy to a tile in the workgroup address space. The products
// then have whole tiles of static shapes, and only the copies handle edges. Where the tiles divide the problem, the
// kernel has no code for edges. The zeros do not change the sums.
//
// The attributes `operand_a` and `operand_b` mark allocations and copies, as in `stage_in_shared_memory`.
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
// With tiles that divide the problem there is neither a fill nor a subview, and copies have static shapes.

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stage_operands_in_shared_memory(%module: !transform.any_op {transform.readonly}) {
    // Fuses the paddings into the k loop, so that each k step pads its own tiles. A reduction of one step has no loop,
    // and its paddings are not moved.
    %k_loops = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %k_loops : !transform.any_op {
    ^bb0(%k_loop: !transform.any_op):
      %step = transform.structured.match ops{["linalg.matmul"]} in %k_loop : (!transform.any_op) -> !transform.any_op
      %a_slice = transform.get_producer_of_operand %step[0] : (!transform.any_op) -> !transform.any_op
      %a_paddings = transform.get_producer_of_operand %a_slice[0] : (!transform.any_op) -> !transform.any_op
      // A pair of products has one A.
      %a_padding = transform.merge_handles deduplicate %a_paddings : !transform.any_op
      %b_slice = transform.get_producer_of_operand %step[1] : (!transform.any_op) -> !transform.any_op
      %b_padding = transform.get_producer_of_operand %b_slice[0] : (!transform.any_op) -> !transform.any_op
      %a_tile, %with_a = transform.structured.fuse_into_containing_op %a_padding into %k_loop
        : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
      %b_tile, %with_both = transform.structured.fuse_into_containing_op %b_padding into %with_a
        : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    }

    // Fusion guards against tiles that lie entirely in the padding. There are none: the grid and the k loop end with
    // the last tile that contains an element of C, or of A and B.
    %hosts = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %hosts : !transform.any_op {
    ^bb0(%host: !transform.any_op):
      %guards = transform.structured.match ops{["scf.if"]} in %host : (!transform.any_op) -> !transform.any_op
      transform.scf.take_assumed_branch %guards take_else_branch : (!transform.any_op) -> ()
    }
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %tensors {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.memref.resolve_ranked_shaped_type_result_dims
      transform.apply_patterns.scf.for_loop_canonicalization
    } : !transform.any_op

    // The padding of A becomes an allocation in shared memory and a copy to it.
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %a_tiles = transform.get_producer_of_operand %matmul[0] : (!transform.any_op) -> !transform.any_op
    %a = transform.merge_handles deduplicate %a_tiles : !transform.any_op
    // `bufferize_to_allocation` crashes for an op that cannot be bufferized, such as one that reads a buffer.
    %a_pad = transform.cast %a : !transform.any_op to !transform.op<"tensor.pad">
    %a_buffer, %a_ops = transform.structured.bufferize_to_allocation %a_pad {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.op<"tensor.pad">
    %a_copy = transform.select "linalg.copy" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_copy "operand_a" : !transform.any_op
    %a_alloc = transform.select "memref.alloc" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_alloc "operand_a" : !transform.any_op

    // The same for B.
    %b = transform.get_producer_of_operand %matmul[1] : (!transform.any_op) -> !transform.any_op
    %b_pad = transform.cast %b : !transform.any_op to !transform.op<"tensor.pad">
    %b_buffer, %b_ops = transform.structured.bufferize_to_allocation %b_pad {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.op<"tensor.pad">
    %b_copy = transform.select "linalg.copy" in %b_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %b_copy "operand_b" : !transform.any_op
    %b_alloc = transform.select "memref.alloc" in %b_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %b_alloc "operand_b" : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
