// Swizzles the shared tiles: XORs the column of an access with its row, so that no access has bank conflicts.
//
// `ldmatrix` reads eight rows of 16 bytes at the same column, which are in the same banks in an unswizzled tile. The
// swizzle XORs the index of a 16-byte column in row r with r modulo eight, if a row has at least 128 bytes, the width
// of all banks. If two or four rows have 128 bytes together, it takes r / 2 modulo four, or r / 4 modulo two. The eight
// rows of a load are then in eight different groups of banks, and so are the rows that the copies write. Unlike
// padding, swizzling takes no shared memory, so that larger tiles or more stages fit.
//
// The step refuses tiles with rows of 16 bytes, which have one column and nothing to permute.
//
// Left out: the fragment loads have bank conflicts.
//
// Source: CC'22, sections 2.2 and 4.3, which name unswizzled shared memory as a limitation of WMMA.
//
// Before:
//   %a = nvgpu.ldmatrix %shared_a[%stage, %row, %column]
// After, with rows of 64 bytes:
//   %permuted = arith.xori %column, (%row and 6) shl 2
//   %a = nvgpu.ldmatrix %shared_a[%stage, %row, %permuted]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @swizzle_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
        {condition = "a_width * a_bits > 128",
         message = "rows of A's tile in shared memory must be longer than 128 bits (a_width elements of a_bits)"},
        {condition = "b_width * a_bits > 128",
         message = "rows of B's tile in shared memory must be longer than 128 bits (b_width elements of a_bits)"}
      ]} {
    %plain = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // The pass skips functions that contain a view of any buffer, such as one of C in a fused epilogue.
    transform.apply_patterns to %plain {
      transform.apply_patterns.memref.fold_memref_alias_ops
    } : !transform.any_op
    // The pass applies the same permutation to every access to a tile, reads and writes.
    %swizzled = transform.apply_registered_pass "nvgpu-optimize-shared-memory" to %plain
      : (!transform.any_op) -> !transform.any_op
    transform.apply_cse to %swizzled : !transform.any_op
    transform.yield
  }
}
