module attributes {transform.with_named_sequence} {
  transform.named_sequence @pad_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {padding = 0 : i64}} {
    %a = transform.structured.match ops{["memref.alloc"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_padded = transform.structured.replace %a attributes {knobs = {shape = "[block_m, block_k + padding]"}} {
      %tile = memref.alloc() {operand_a}
        : memref<128x40xf16, #gpu.address_space<workgroup>>
    } : (!transform.any_op) -> !transform.any_op
    %b = transform.structured.match ops{["memref.alloc"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_padded = transform.structured.replace %b attributes {knobs = {shape = "[block_k, block_n + padding]"}} {
      %tile = memref.alloc() {operand_b}
        : memref<32x136xf16, #gpu.address_space<workgroup>>
    } : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
