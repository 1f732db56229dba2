// Pads every row of the shared tiles by `padding` elements of 16 bits to avoid bank conflicts.
//
// Shared memory has 32 banks of 4 bytes. A WMMA load reads 16 rows at the same column. If the row pitch is a multiple
// of 128 bytes, all rows start in the same bank and the accesses serialize. A padding of 8 elements shifts consecutive
// rows by 4 banks. Any multiple of 8 keeps rows 16-byte aligned, as WMMA loads require. The rows are those of the tile
// as stored: a column-major A has rows of block_m elements, not block_k.
//
// At this point every access to a tile is indexed (by transfers, or by loads and stores in loops), so that the shape of
// the tile can change without a change of address arithmetic.
//
// Left out: the padding is 0 (`left_out`), and fragment loads have bank conflicts.
//
// Source: CC'22, section 3.2.
//
// Before:
//   %shared_a = memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
// After, with padding = 8:
//   %shared_a = memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pad_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization, left_out = {padding = 0 : i64}, requires = [
        {condition = "a_width == (block_k if a_layout == 'row' else block_m)",
         message = "a_width must be the row length of A's tile in its layout (a_layout)"},
        {condition = "b_width == (block_n if b_layout == 'row' else block_k)",
         message = "b_width must be the row length of B's tile in its layout (b_layout)"}
      ]} {
    // `structured.replace` does not check the type: the new allocation is larger, and all uses are indexed accesses.
    %a = transform.structured.match ops{["memref.alloc"]} attributes {operand_a} in %module
      : (!transform.any_op) -> !transform.any_op
    %a_padded = transform.structured.replace %a
        attributes {knobs = {
          shape = "[block_m * block_k / a_width, a_width + padding * 16 / a_bits]", element_type = "a_type"}} {
      %tile = memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>
    } : (!transform.any_op) -> !transform.any_op

    %b = transform.structured.match ops{["memref.alloc"]} attributes {operand_b} in %module
      : (!transform.any_op) -> !transform.any_op
    %b_padded = transform.structured.replace %b
        attributes {knobs = {
          shape = "[block_k * block_n / b_width, b_width + padding * 16 / b_bits]", element_type = "b_type"}} {
      %tile = memref.alloc() {operand_b} : memref<32x136xf16, #gpu.address_space<workgroup>>
    } : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
