// Loads no more rows than a matrix has, where it has fewer than a tile: a product with few rows, or a short k.
//
// The matrix unit takes 64 rows, however few A has, and TMA fills the rest of a box with zeros, which takes it time as
// loading does: with 16 rows of A, three quarters of a box of 64 are filling, again in every step, and the loads of B
// wait behind it. A box as short as the matrix leaves the rest of the tile alone, which threads fill once, before the
// first load.
//
// Upstream has no op for it; boxes there are whole tiles.
//
// Before, with 16 rows of A in tiles of 64 x 64:
//   %a_map = nvgpu.tma.create.descriptor %a box[%c64, %c64] : ... -> <tensor = memref<64x64xf16, 3>, ...>
//   nvgpu.mbarrier.arrive.expect_tx %full[%slot], 16384
//   nvgpu.tma.async.load %a_map[%k, %i], %full[%slot] to %tile : ... -> memref<64x64xf16, ...>
// After:
//   %a_map = nvgpu.tma.create.descriptor %a box[%c16, %c64] : ... -> <tensor = memref<16x64xf16, 3>, ...>
//   scf.for %unit = %thread to 3072 step 256 { vector.store %zeros, %ring_a[...] }
//   nvvm.fence.proxy {async.shared}
//   ...
//   nvgpu.mbarrier.arrive.expect_tx %full[%slot], 10240
//   %rows = memref.subview %tile[0, 0] [16, 64] [1, 1]
//   nvgpu.tma.async.load %a_map[%k, %i], %full[%slot] to %rows : ... -> memref<16x64xf16, ...>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @shrink_tma_boxes(%module: !transform.any_op {transform.readonly}) attributes {optimization} {
    "tc.shrink_tma_boxes"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
