// Appendix 2.1 of the RFC: C = AB at work-group level, with prefetches into the cache three steps ahead.
//
// The loops over the tiles of C are the grid. Values that the RFC assigns again are carried by the loop.
#mp_a     = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
#mp_a_pfh = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 32]}>
#mp_b     = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#mp_b_pfh = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [8, 32]}>
#mp_c     = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
!a     = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a}>>
!b     = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b}>>
!a_pfh = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a_pfh}>>
!b_pfh = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b_pfh}>>
!c     = !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #mp_c}>>

func.func @gemm(%a: memref<512x160xf16>, %b: memref<160x768xf16>, %c: memref<512x768xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %c256 = arith.constant 256 : index
  %threads = arith.constant 512 : index
  %m = memref.dim %a, %c0 : memref<512x160xf16>
  %k = memref.dim %a, %c1 : memref<512x160xf16>
  %n = memref.dim %b, %c1 : memref<160x768xf16>
  %tiles_m = arith.ceildivui %m, %c256 : index
  %tiles_n = arith.ceildivui %n, %c256 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %tiles_n, %gy = %tiles_m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c256 : index
    %j = arith.muli %x, %c256 : index
    %a_tile = "xetile.init_tile"(%a, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<512x160xf16>, index, index) -> !a
    %b_tile = "xetile.init_tile"(%b, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<160x768xf16>, index, index) -> !b
    %a_pfh = "xetile.init_tile"(%a, %i, %c96) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<512x160xf16>, index, index) -> !a_pfh
    %b_pfh = "xetile.init_tile"(%b, %c96, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<160x768xf16>, index, index) -> !b_pfh
    %c_tile = "xetile.init_tile"(%c, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
      : (memref<512x768xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<256x256xf32>
    %sum, %last_a, %last_b, %last_pa, %last_pb = scf.for %step = %c0 to %k step %c32
        iter_args(%acc = %zero, %ta = %a_tile, %tb = %b_tile, %pa = %a_pfh, %pb = %b_pfh)
        -> (vector<256x256xf32>, !a, !b, !a_pfh, !b_pfh) {
      %va = "xetile.load_tile"(%ta) : (!a) -> vector<256x32xf16>
      %vb = "xetile.load_tile"(%tb) : (!b) -> vector<32x256xf16>
      "xetile.prefetch_tile"(%pa) {locality = 3 : i32} : (!a_pfh) -> ()
      "xetile.prefetch_tile"(%pb) {locality = 3 : i32} : (!b_pfh) -> ()
      %vc = "xetile.tile_mma"(%va, %vb, %acc) {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map = #mp_c}
        : (vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32>) -> vector<256x256xf32>
      %ta1 = "xetile.update_tile_offset"(%ta, %c0, %c32) : (!a, index, index) -> !a
      %tb1 = "xetile.update_tile_offset"(%tb, %c32, %c0) : (!b, index, index) -> !b
      %pa1 = "xetile.update_tile_offset"(%pa, %c0, %c32) : (!a_pfh, index, index) -> !a_pfh
      %pb1 = "xetile.update_tile_offset"(%pb, %c32, %c0) : (!b_pfh, index, index) -> !b_pfh
      scf.yield %vc, %ta1, %tb1, %pa1, %pb1 : vector<256x256xf32>, !a, !b, !a_pfh, !b_pfh
    }
    "xetile.store_tile"(%sum, %c_tile) : (vector<256x256xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

func.func @golden(%a: tensor<512x160xf16>, %b: tensor<160x768xf16>, %c: tensor<512x768xf32>) -> tensor<512x768xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<512x768xf32>) -> tensor<512x768xf32>
  %d = linalg.matmul ins(%a, %b : tensor<512x160xf16>, tensor<160x768xf16>) outs(%init : tensor<512x768xf32>)
    -> tensor<512x768xf32>
  return %d : tensor<512x768xf32>
}
