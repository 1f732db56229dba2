// Copies the tiles of A and B into shared memory, from where all warps of the block read them.
//
// Every element of a tile is needed by several warps (by block_n / warp_n of them for A, by block_m / warp_m for B).
// From shared memory each warp gets it at the cost of one global read a block.
//
// The copy is made of upstream's padding: a `tensor.pad` that pads nothing and may not fold away (`nofold`) is a copy
// that bufferizes to an allocation of its own, here in the workgroup address space. The marks `operand_a` and
// `operand_b` tell later steps which tile is which.
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
  transform.named_sequence @stage_in_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %staged, %pads, %copy_back = transform.structured.pad %matmul {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 0], copy_back_op = "none"
      } : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)

    %a = transform.get_producer_of_operand %staged[0] : (!transform.any_op) -> !transform.any_op
    %a_buffer, %a_ops = transform.structured.bufferize_to_allocation %a {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %a_copy = transform.select "linalg.copy" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_copy "operand_a" : !transform.any_op
    %a_alloc = transform.select "memref.alloc" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_alloc "operand_a" : !transform.any_op

    %b = transform.get_producer_of_operand %staged[1] : (!transform.any_op) -> !transform.any_op
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
