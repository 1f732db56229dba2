// Loads fragments of fp8 as fragments of i8.
//
// LLVM has fp8 fragments as registers of bytes. Upstream lowers `nvgpu.mma.sync` of fp8 to them, but leaves the
// elements of `nvgpu.ldmatrix` in fp8. The step loads the elements as i8, from a view of the same bytes, and casts the
// fragments. It does not change fragments of other types.
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
