// Loads two fragments of B with one `ldmatrix` of four tiles instead of two of two.
//
// A fragment of B is 16 x 8, two tiles, for which only 16 of the 32 lanes give addresses. The addresses that the other
// lanes compute for nothing are those of the fragment to the right: one instruction of four tiles loads both, and half
// of B's loads disappear. Each pair is checked, lane by lane, before it is joined.
//
// Upstream chooses the number of tiles from the fragment's shape alone. Indices must be affine in the lane still, hence
// before the swizzle.
//
// Before:
//   %b0 = nvgpu.ldmatrix %shared_b[%row, %column] {numTiles = 2, transpose = true} -> vector<2x2xf16>
//   %b1 = nvgpu.ldmatrix %shared_b[%row, %column + 8] {numTiles = 2, transpose = true} -> vector<2x2xf16>
// After:
//   %b01 = nvgpu.ldmatrix %shared_b[%row, %column] {numTiles = 4, transpose = true} -> vector<4x2xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @merge_ldmatrix(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.merge_ldmatrix"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
