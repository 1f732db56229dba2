// Shrinks TMA boxes to the part of a tile inside its matrix: few rows of A, a short k, or tiles of other than 64 rows.
//
// `wgmma` always takes 64 rows, and TMA zero-fills the rows of a box beyond the matrix, which takes as long as a load.
// With 16 rows of A, three quarters of a box of 64 rows are zeros, written again in every k step, and the loads of B
// queue after them. If the box is shrunk to the extent of the matrix instead, threads zero the rest of the tile once,
// before the first load.
//
// The rows of a tile of C need not be a multiple of 64 either (`block_m`), so that the tiles can fill one wave evenly:
// 5120 rows are 128 tiles of 40. In shared memory such a tile of A has 64 rows, of which the last 24 are zeros; their
// products are not stored.
//
// Upstream's boxes are whole tiles.
//
// Left out: boxes are as high as tiles.
//
// Before, with 16 rows of A in tiles of 64 x 64:
//   %A_map = nvgpu.tma.create.descriptor %a box[%c64, %c64] : ... -> <tensor = memref<64x64xf16, 3>, ...>
//   nvgpu.mbarrier.arrive.expect_tx %full[%stage], 16384
//   nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %tile : ... -> memref<64x64xf16, ...>
// After:
//   %A_map = nvgpu.tma.create.descriptor %a box[%c16, %c64] : ... -> <tensor = memref<16x64xf16, 3>, ...>
//   scf.for %unit = %thread to 384 step 256 {
//     vector.store %zeros, %shared_a[0, 0, %unit floordiv 8 + 16, %unit mod 8 * 8]
//     vector.store %zeros, %shared_a[1, 0, %unit floordiv 8 + 16, %unit mod 8 * 8]
//     ...
//   }
//   nvvm.fence.proxy {async.shared}
//   ...
//   nvgpu.mbarrier.arrive.expect_tx %full[%stage], 10240
//   %rows = memref.subview %tile[0, 0] [16, 64] [1, 1]
//   nvgpu.tma.async.load %A_map[%k, %i], %full[%stage] to %rows : ... -> memref<16x64xf16, ...>

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @shrink_tma_boxes(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.shrink_tma_boxes"(%module) {unused_rows = 0 : i64, knobs = {unused_rows = "staged_m - block_m"}}
      : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
