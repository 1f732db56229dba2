// Adds `padding` elements to every row of the shared tiles, so that rows start in different banks.
//
// Shared memory has 32 banks of 4 bytes. A WMMA load reads 16 rows at the same column: when a row is a multiple of 128
// bytes, all of them lie in the same banks and take turns. Eight f16 more a row shift each row by 4 banks. Any multiple
// of eight keeps rows on the 16-byte boundary that WMMA loads need.
//
// Every access is by index by now (transfers, and loads and stores in loops), so the tile may change its shape: nobody
// computes addresses on their own.
//
// Source: CC'22, section 3.2.
//
// Before:
//   %shared_a = memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
// After, with padding = 8:
//   %shared_a = memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pad_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {padding = 0 : i64}} {
    %a = transform.structured.match ops{["memref.alloc"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_padded = transform.structured.replace %a attributes {knobs = {shape = "[block_m, block_k + padding]"}} {
      %tile = memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>
    } : (!transform.any_op) -> !transform.any_op

    %b = transform.structured.match ops{["memref.alloc"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_padded = transform.structured.replace %b attributes {knobs = {shape = "[block_k, block_n + padding]"}} {
      %tile = memref.alloc() {operand_b} : memref<32x136xf16, #gpu.address_space<workgroup>>
    } : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
