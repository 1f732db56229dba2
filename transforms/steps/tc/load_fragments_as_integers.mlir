// Loads fragments of fp8 as bytes.
//
// Registers of fp8 fragments are registers of bytes to LLVM. Upstream lowers `nvgpu.mma.sync` of fp8 so, but not
// `nvgpu.ldmatrix`, whose elements it leaves in fp8. The step loads them as i8, from a view of the same bytes, and
// casts the fragments. Fragments of other types stay as they are.
//
// Before:
//   %tile = memref.view %shared[%offset][] : memref<24576xi8, ...> to memref<3x128x64xf8E4M3FN, ...>
//   %a = nvgpu.ldmatrix %tile[...] {numTiles = 4, transpose = false} -> vector<4x4xf8E4M3FN>
// After:
//   %bytes = memref.view %shared[%offset][] : memref<24576xi8, ...> to memref<3x128x64xi8, ...>
//   %0 = nvgpu.ldmatrix %bytes[...] {numTiles = 4, transpose = false} -> vector<4x4xi8>
//   %a = arith.bitcast %0 : vector<4x4xi8> to vector<4x4xf8E4M3FN>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @load_fragments_as_integers(%module: !transform.any_op {transform.readonly}) {
    "tc.load_fragments_as_integers"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
