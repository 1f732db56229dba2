// Converts the tiles of subgroups to descriptors and 2D block operations of XeGPU.
//
// A descriptor names a matrix and the size of a block. Each load, store and prefetch takes the offsets of the block as
// operands, so that loops carry two indices instead of a tile. The hardware compares the offsets with the bounds of the
// matrix, and edges need no code. A column-major tile is loaded as a block of the row-major matrix and transposed in
// registers. 2D block operations need a row pitch of at least 64 bytes that is a multiple of 16; the step refuses other
// matrices.
//
// Source: the 2D block messages of the OpenCL C extension cl_intel_subgroup_2d_block_io.
//
// Before:
//   %tile = xetile.init_tile %A[%i, %j] : memref<512x512xf16> -> !xetile.tile<vector<32x32xf16>>
//   %v = xetile.load_tile %tile : vector<32x32xf16>
//   %d = xetile.tile_mma %v, %w, %acc
// After:
//   %desc = xegpu.create_nd_tdesc %A : memref<512x512xf16> -> !xegpu.tensor_desc<32x32xf16>
//   %v = xegpu.load_nd %desc[%i, %j] : vector<32x32xf16>
//   %d = xegpu.dpas %v, %w, %acc

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @convert_to_xegpu(%module: !transform.any_op {transform.readonly}) {
    "tc.tiles_to_xegpu"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
