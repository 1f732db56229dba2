// Keeps

module attributes {transform.with_named_sequence} {
  transform.named_sequence @stage_c_in_shared_memory(%module: !transform.any_op {transform.readonly},
      %block_m: !transform.param<i64> {transform.readonly}, %block_n: !transform.param<i64> {transform.readonly},
      %block_k: !transform.param<i64> {transform.readonly}) {
    // Either C is written from the sums, which takes a copy, or a rounding reads them.
    %store = transform.structured.match ops{["tensor.parallel_insert_slice"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %last = transform.get_producer_of_operand %store[0] : (!transform.any_op) -> !transform.any_op
    %rounding = transform.select "linalg.generic" in %last : (!transform.any_op) -> !transform.any_op
    %rounded = transform.get_producer_of_operand %rounding[0] : (!transform.any_op) -> !transform.any_op
    %rounded_sums, %rounded_pads, %no_copy = transform.structured.pad %rounded
      pad_to_multiple_of [%block_m, %block_n, %block_k] {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 1], copy_back_op = "none"
      } : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %plain = transform.select "linalg.matmul" in %last : (!transform.any_op) -> !transform.any_op
    %sums, %pads, %copy = transform.structured.pad %plain pad_to_multiple_of [%block_m, %block_n, %block_k] {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 1], copy_back_op = "linalg.copy"
      } : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)

    // Padded zeros are zeros: what is left is the fill of a whole tile.
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %tensors {
      transform.apply_patterns.canonicalization
    } : !transform.any_op

    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %start = transform.get_producer_of_operand %matmul[2] : (!transform.any_op) -> !transform.any_op
    %buffer, %ops = transform.structured.bufferize_to_allocation %start {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %start_copy = transform.select "linalg.copy" in %ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %start_copy "operand_c" : !transform.any_op
    %alloc = transform.select "memref.alloc" in %ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %alloc "operand_c" : !transform.any_op

    %written = transform.structured.match ops{["tensor.parallel_insert_slice"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %epilogue = transform.get_producer_of_operand %written[0] : (!transform.any_op) -> !transform.any_op
    transform.annotate %epilogue "operand_c" : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
