// Permutes the columns of the shared tiles by an exclusive or with the row, so that no access has bank conflicts.
//
// `ldmatrix` reads eight rows of 16 bytes at the same column: in a plain tile all from the same banks. With the 16-byte
// columns of row r permuted by r modulo eight they lie in eight different ones, and so do the rows that the copies
// write. Nothing is padded, so shared memory holds more tiles.
//
// A row of 16 bytes has one column only and nothing to permute: such tiles are refused.
//
// Source: CC'22, section 2.2 and 4.3, names unswizzled shared memory as what is left on the table.
//
// Before:
//   %a = nvgpu.ldmatrix %shared_a[%stage, %row, %column]
// After:
//   %permuted = arith.xori %column, (%row and 6) shl 2
//   %a = nvgpu.ldmatrix %shared_a[%stage, %row, %permuted]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @swizzle_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
        {condition = "a_width * a_bits > 128",
         message = "a row of the shared tile of A must be longer than 128 bits (a_width elements of a_bits)"},
        {condition = "b_width * a_bits > 128",
         message = "a row of the shared tile of B must be longer than 128 bits (b_width elements of a_bits)"}
      ]} {
    %plain = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %swizzled = transform.apply_registered_pass "nvgpu-optimize-shared-memory" to %plain
      : (!transform.any_op) -> !transform.any_op
    transform.apply_cse to %swizzled : !transform.any_op
    transform.yield
  }
}
