// Keeps

module attributes {transform.with_named_sequence} {
  transform.named_sequence @stage_operands_in_shared_memory(%module: !transform.any_op {transform.readonly}) {
    %k_loop = transform.structured.match ops{["scf.for"]} in %module : (!transform.any_op) -> !transform.any_op
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %a_slice = transform.get_producer_of_operand %matmul[0] : (!transform.any_op) -> !transform.any_op
    %a_pad = transform.get_producer_of_operand %a_slice[0] : (!transform.any_op) -> !transform.any_op
    %b_slice = transform.get_producer_of_operand %matmul[1] : (!transform.any_op) -> !transform.any_op
    %b_pad = transform.get_producer_of_operand %b_slice[0] : (!transform.any_op) -> !transform.any_op
    %a, %with_a = transform.structured.fuse_into_containing_op %a_pad into %k_loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %b, %with_both = transform.structured.fuse_into_containing_op %b_pad into %with_a
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)

    // Fusion of a pad guards against tiles that lie in the padding altogether. There are none: each tile, also the last
    // of a row, a column or the reduction, has an element at least.
    %guards = transform.structured.match ops{["scf.if"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.scf.take_assumed_branch %guards take_else_branch : (!transform.any_op) -> ()
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %tensors {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
    } : !transform.any_op

    %a_buffer, %a_ops = transform.structured.bufferize_to_allocation %a {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %a_copy = transform.select "linalg.copy" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_copy "operand_a" : !transform.any_op
    %a_alloc = transform.select "memref.alloc" in %a_ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %a_alloc "operand_a" : !transform.any_op

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
