// Appendix 2.5 of the RFC: C = AB, with prefetches into two levels of caches.
//
// Four steps of k are prefetched into the second level at once, and one step into the first level. The tile of C has 512
// rows, by which the loop over the rows advances too (by 256 in the RFC).
#mp_a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [64, 32]}>
#mp_b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#mp_c = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [64, 64]}>
#mp_a_copl2 = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [16, 128]}>
#mp_b_copl2 = #xetile.wg_map<{sg_layout = [16, 2], sg_data = [8, 128]}>
#mp_a_copl1 = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [16, 32]}>
#mp_b_copl1 = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [8, 32]}>
!a = !xetile.tile<vector<512x32xf16>, #xetile.tile_attr<{wg = #mp_a}>>
!b = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b}>>
!c = !xetile.tile<vector<512x256xf32>, #xetile.tile_attr<{wg = #mp_c}>>
!a_l2 = !xetile.tile<vector<512x128xf16>, #xetile.tile_attr<{wg = #mp_a_copl2}>>
!b_l2 = !xetile.tile<vector<128x256xf16>, #xetile.tile_attr<{wg = #mp_b_copl2}>>
!a_l1 = !xetile.tile<vector<512x32xf16>, #xetile.tile_attr<{wg = #mp_a_copl1}>>
!b_l1 = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b_copl1}>>

func.func @gemm(%a: memref<512x160xf16>, %b: memref<160x768xf16>, %c: memref<512x768xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c_rows = arith.constant 0x200 : index
  %m = memref.dim %a, %c0 : memref<512x160xf16>
  %k = memref.dim %a, %c1 : memref<512x160xf16>
  %n = memref.dim %b, %c1 : memref<160x768xf16>
  %tiles_n = arith.ceildivui %n, %c256 : index
  %tiles_m = arith.ceildivui %m, %c_rows : index
  %threads = arith.constant 512 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %tiles_n, %gy = %tiles_m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c_rows : index
    %j = arith.muli %x, %c256 : index
    %a_l2_0 = "xetile.init_tile"(%a, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_l2
    %b_l2_0 = "xetile.init_tile"(%b, %c0, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_l2
    "xetile.prefetch_tile"(%a_l2_0) {locality = 2 : i32} : (!a_l2) -> ()
    "xetile.prefetch_tile"(%b_l2_0) {locality = 2 : i32} : (!b_l2) -> ()
    %a_l2_128 = "xetile.init_tile"(%a, %i, %c128)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_l2
    %b_l2_128 = "xetile.init_tile"(%b, %c128, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_l2
    "xetile.prefetch_tile"(%a_l2_128) {locality = 2 : i32} : (!a_l2) -> ()
    "xetile.prefetch_tile"(%b_l2_128) {locality = 2 : i32} : (!b_l2) -> ()
    %a_l1_0 = "xetile.init_tile"(%a, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_l1
    %b_l1_0 = "xetile.init_tile"(%b, %c0, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_l1
    "xetile.prefetch_tile"(%a_l1_0) {locality = 3 : i32} : (!a_l1) -> ()
    "xetile.prefetch_tile"(%b_l1_0) {locality = 3 : i32} : (!b_l1) -> ()
    %a_l1_32 = "xetile.init_tile"(%a, %i, %c32)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_l1
    %b_l1_32 = "xetile.init_tile"(%b, %c32, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_l1
    "xetile.prefetch_tile"(%a_l1_32) {locality = 3 : i32} : (!a_l1) -> ()
    "xetile.prefetch_tile"(%b_l1_32) {locality = 3 : i32} : (!b_l1) -> ()
    %a_l1_64 = "xetile.init_tile"(%a, %i, %c64)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_l1
    %b_l1_64 = "xetile.init_tile"(%b, %c64, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_l1
    "xetile.prefetch_tile"(%a_l1_64) {locality = 3 : i32} : (!a_l1) -> ()
    "xetile.prefetch_tile"(%b_l1_64) {locality = 3 : i32} : (!b_l1) -> ()
    %a_l1_96 = "xetile.init_tile"(%a, %i, %c96)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_l1
    %b_l1_96 = "xetile.init_tile"(%b, %c96, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_l1
    "xetile.prefetch_tile"(%a_l1_96) {locality = 3 : i32} : (!a_l1) -> ()
    "xetile.prefetch_tile"(%b_l1_96) {locality = 3 : i32} : (!b_l1) -> ()
    %a_l2_first = "xetile.update_tile_offset"(%a_l2_128, %c0, %c128) : (!a_l2, index, index) -> !a_l2
    %b_l2_first = "xetile.update_tile_offset"(%b_l2_128, %c128, %c0) : (!b_l2, index, index) -> !b_l2
    %a_l1_first = "xetile.update_tile_offset"(%a_l1_96, %c0, %c32) : (!a_l1, index, index) -> !a_l1
    %b_l1_first = "xetile.update_tile_offset"(%b_l1_96, %c32, %c0) : (!b_l1, index, index) -> !b_l1
    %a_tile = "xetile.init_tile"(%a, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a
    %b_tile = "xetile.init_tile"(%b, %c0, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b
    %c_tile = "xetile.init_tile"(%c, %i, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x768xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<512x256xf32>
    %sum, %a_last, %b_last, %a1_last, %b1_last, %a2_last, %b2_last = scf.for %step = %c0 to %k step %c32
        iter_args(%acc = %zero, %ta = %a_tile, %tb = %b_tile, %a1 = %a_l1_first, %b1 = %b_l1_first,
                  %a2 = %a_l2_first, %b2 = %b_l2_first)
        -> (vector<512x256xf32>, !a, !b, !a_l1, !b_l1, !a_l2, !b_l2) {
      %va = "xetile.load_tile"(%ta) : (!a) -> vector<512x32xf16>
      %vb = "xetile.load_tile"(%tb) : (!b) -> vector<32x256xf16>
      %within = arith.remui %step, %c128 : index
      %is_first = arith.cmpi eq, %within, %c0 : index
      %a2_next, %b2_next = scf.if %is_first -> (!a_l2, !b_l2) {
        gpu.barrier
        "xetile.prefetch_tile"(%a2) {locality = 2 : i32} : (!a_l2) -> ()
        "xetile.prefetch_tile"(%b2) {locality = 2 : i32} : (!b_l2) -> ()
        %a2_moved = "xetile.update_tile_offset"(%a2, %c0, %c128) : (!a_l2, index, index) -> !a_l2
        %b2_moved = "xetile.update_tile_offset"(%b2, %c128, %c0) : (!b_l2, index, index) -> !b_l2
        scf.yield %a2_moved, %b2_moved : !a_l2, !b_l2
      } else {
        scf.yield %a2, %b2 : !a_l2, !b_l2
      }
      "xetile.prefetch_tile"(%a1) {locality = 3 : i32} : (!a_l1) -> ()
      "xetile.prefetch_tile"(%b1) {locality = 3 : i32} : (!b_l1) -> ()
      %a1_next = "xetile.update_tile_offset"(%a1, %c0, %c32) : (!a_l1, index, index) -> !a_l1
      %b1_next = "xetile.update_tile_offset"(%b1, %c32, %c0) : (!b_l1, index, index) -> !b_l1
      %ta_next = "xetile.update_tile_offset"(%ta, %c0, %c32) : (!a, index, index) -> !a
      %tb_next = "xetile.update_tile_offset"(%tb, %c32, %c0) : (!b, index, index) -> !b
      %vc = "xetile.tile_mma"(%va, %vb, %acc) {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map = #mp_c}
        : (vector<512x32xf16>, vector<32x256xf16>, vector<512x256xf32>) -> vector<512x256xf32>
      scf.yield %vc, %ta_next, %tb_next, %a1_next, %b1_next, %a2_next, %b2_next
        : vector<512x256xf32>, !a, !b, !a_l1, !b_l1, !a_l2, !b_l2
    }
    "xetile.store_tile"(%sum, %c_tile) : (vector<512x256xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

func.func @golden(%a: tensor<512x160xf16>, %b: tensor<160x768xf16>, %c: tensor<512x768xf32>) -> tensor<512x768xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<512x768xf32>) -> tensor<512x768xf32>
  %d = linalg.matmul ins(%a, %b : tensor<512x160xf16>, tensor<160x768xf16>)
    outs(%init : tensor<512x768xf32>) -> tensor<512x768xf32>
  return %d : tensor<512x768xf32>
}
