// Pads every row of the shared tiles by `padding` elements to avoid bank conflicts.
//
// Shared memory has 32 banks of 4 bytes. A WMMA load reads 16 rows at the same column; when the row pitch is a multiple
// of 128 bytes, all rows start in the same bank and the accesses serialize. Eight f16 more a row shift consecutive rows
// by 4 banks. Any multiple of eight keeps rows 16-byte aligned, as WMMA loads require.
//
// At this point every access to a tile is indexed (transfers, and loads and stores in loops), so the shape of the tile
// can change without a change of address arithmetic.
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
    // `structured.replace` does not check the type: the new allocation is larger, and all uses are indexed accesses.
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
