// Stages the tiles of A and B of one k step in shared memory.
//
// Several warps use every element of a tile: block_n / warp_n warps use an element of A, block_m / warp_m an element of
// B. Staged in shared memory, each element is read from global memory once per block.
//
// Upstream's padding creates the copies: a `tensor.pad` that pads nothing and must not fold (`nofold`) becomes a copy
// to a new allocation, here in the workgroup address space. The attributes `operand_a` and `operand_b` mark the tiles
// and their copies for later steps.
//
// Left out: fragments are loaded from global memory, once per warp.
//
// Source: CC'22, section 3.2.
//
// Before:
//   linalg.matmul ins(%a_tile, %b_tile : tensor<128x32xf16>, tensor<32x128xf16>) outs(%c : ...)
// After:
//   %shared_a = memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
//   linalg.copy {operand_a} ins(%a_tile : ...) outs(%shared_a : ...)
//   ... the same for B ...
//   linalg.matmul ins(%staged_a, %staged_b : ...) outs(%c : ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stage_in_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    // Operands 0 and 1 get a padding that cannot fold (nofold); the accumulator, operand 2, gets none.
    %staged, %pads, %copy_back = transform.structured.pad %matmul {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 0], copy_back_op = "none"
      } : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)

    // The padding of A becomes an allocation in shared memory and a copy to it.
    %a = transform.get_producer_of_operand %staged[0] : (!transform.any_op) -> !transform.any_op
    %a_buffer, %a_ops = transform.structured.bufferize_to_allocation %a {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %a_copy = transform.select "linalg.copy" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_copy "operand_a" : !transform.any_op
    %a_alloc = transform.select "memref.alloc" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_alloc "operand_a" : !transform.any_op

    // The same for B.
    %b = transform.get_producer_of_operand %staged[1] : (!transform.any_op) -> !transform.any_op
    %b_buffer, %b_ops = transform.structured.bufferize_to_allocation %b {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %b_copy = transform.select "linalg.copy" in %b_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %b_copy "operand_b" : !transform.any_op
    %b_alloc = transform.select "memref.alloc" in %b_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %b_alloc "operand_b" : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
