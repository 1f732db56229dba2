// Merges pairs of two-matrix `ldmatrix` loads of B into loads of four matrices.
//
// A fragment of B is 16 x 8, two 8 x 8 matrices, for which only 16 of the 32 lanes supply addresses. The other lanes
// compute the addresses of the fragment to the right, so that one instruction with four matrices loads both. This
// halves the number of loads of B. The step verifies every pair lane by lane before it merges it.
//
// Upstream derives the number of matrices from the fragment's shape alone. The step runs before
// `swizzle_shared_memory`, since it needs indices that are affine in the lane number.
//
// Left out: each fragment of B is loaded by an instruction of its own.
//
// Before:
//   %b0 = nvgpu.ldmatrix %shared_b[%row, %column] {numTiles = 2, transpose = true} -> vector<2x2xf16>
//   %b1 = nvgpu.ldmatrix %shared_b[%row, %column + 8] {numTiles = 2, transpose = true} -> vector<2x2xf16>
// After:
//   %b01 = nvgpu.ldmatrix %shared_b[%row, %column] {numTiles = 4, transpose = true} -> vector<4x2xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @merge_ldmatrix(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.merge_ldmatrix"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
