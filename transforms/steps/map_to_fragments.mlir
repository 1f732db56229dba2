// Unrolls the matmul of a warp to fragments of the size of one tensor-core instruction, in outer-product order.
//
// The matmul becomes one `vector.contract`, which is unrolled with k outermost: within a slice of k, every fragment of
// A is multiplied by every fragment of B. Consecutive instructions then accumulate into different registers and are
// independent of each other. CSE leaves warp_m / 16 + warp_n / 16 fragment loads for warp_m / 16 * warp_n / 16
// products.
//
// Source: CC'22, section 3.3 (loop order after Bhaskaracharya et al.).
//
// Before:
//   linalg.matmul ins(%a_rows, %b_columns : memref<64x32xf16, ...>, memref<32x64xf16, ...>) outs(%c_warp_tile : ...)
// After, with fragments of 16 x 16 x 16 (WMMA):
//   %a = vector.transfer_read %shared_a[...] : memref<128x32xf16, ...>, vector<16x16xf16>
//   %b = vector.transfer_read %shared_b[...] : memref<32x128xf16, ...>, vector<16x16xf16>
//   %c = vector.transfer_read %C[...] : memref<512x512xf32>, vector<16x16xf32>
//   %d = vector.contract ... %a, %b, %c : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
//   vector.transfer_write %d, %C[...]

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_to_fragments(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "warp_m % 16 == 0", message = "warp_m must be a multiple of 16"},
        {condition = "warp_n % 16 == 0", message = "warp_n must be a multiple of 16"},
        {condition = "block_k % fragment_k == 0",
         message = "block_k must be a multiple of a fragment's extent along k (fragment_k)"}
      ]} {
    // If `vectorize_copies` is left out, copies remain, and become scalar loops.
    %copies = transform.structured.match ops{["linalg.copy"]} in %module : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.convert_to_loops %copies : (!transform.any_op) -> !transform.any_op

    // One `vector.contract` per warp: its operands are read as a whole, and the unrolling below slices them.
    %compute = transform.structured.match ops{["linalg.matmul", "linalg.fill"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %compute {create_named_contraction} : !transform.any_op
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Fragment reads must address the shared tiles themselves, not views of them, for later steps to change the layout.
    transform.apply_patterns to %func {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    // The shape of a fragment is that of the instruction: 16 x 16 x 16 for WMMA, 16 x 8 x (256 / bits) for mma.sync, 8
    // x 8 x 4 for f64.
    transform.apply_patterns to %func {
      transform.apply_patterns.gpu.unroll_vectors_subgroup_mma [16, 16, 16]
        {knobs = {m = "8 if a_bits == 64 else 16", n = "fragment_n", k = "fragment_k"}}
    } : !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
