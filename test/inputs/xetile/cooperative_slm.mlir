// Appendix 2.4 of the RFC: C = AB, with tiles of A and B in shared local memory, loaded by all subgroups together.
//
// Shared local memory holds four steps of k. Step k is read while step k + 3 is loaded; the barrier is between the reads
// of the oldest step and the store of the newest into its place.
#mp_a = #xetile.wg_map<{sg_layout = [8, 8], sg_data = [32, 32]}>
#mp_a_cop = #xetile.wg_map<{sg_layout = [64, 1], sg_data = [4, 32]}>
#mp_b = #xetile.wg_map<{sg_layout = [8, 8], sg_data = [32, 32]}>
#mp_b_cop = #xetile.wg_map<{sg_layout = [8, 8], sg_data = [4, 32]}>
#mp_c = #xetile.wg_map<{sg_layout = [8, 8], sg_data = [32, 32]}>
!a_cop = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a_cop}>>
!b_cop = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b_cop}>>
!a_st = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a_cop, memory_space = 3}>>
!b_st = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b_cop, memory_space = 3}>>
!a = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a, memory_space = 3}>>
!b = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b, memory_space = 3}>>
!c = !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #mp_c}>>

func.func @gemm(%a: memref<512x160xf16>, %b: memref<160x768xf16>, %c: memref<512x768xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %m = memref.dim %a, %c0 : memref<512x160xf16>
  %k = memref.dim %a, %c1 : memref<512x160xf16>
  %n = memref.dim %b, %c1 : memref<160x768xf16>
  %tiles_n = arith.ceildivui %n, %c256 : index
  %tiles_m = arith.ceildivui %m, %c256 : index
  %threads = arith.constant 1024 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %tiles_n, %gy = %tiles_m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1)
             workgroup(%slm_a : memref<256x128xf16, 3>, %slm_b : memref<128x256xf16, 3>) {
    %i = arith.muli %y, %c256 : index
    %j = arith.muli %x, %c256 : index
    %a_global_0 = "xetile.init_tile"(%a, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_cop
    %b_global_0 = "xetile.init_tile"(%b, %c0, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_cop
    %a_slm_0 = "xetile.init_tile"(%slm_a, %c0, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<256x128xf16, 3>, index, index) -> !a_st
    %b_slm_0 = "xetile.init_tile"(%slm_b, %c0, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x256xf16, 3>, index, index) -> !b_st
    %a_0 = "xetile.load_tile"(%a_global_0) : (!a_cop) -> vector<256x32xf16>
    %b_0 = "xetile.load_tile"(%b_global_0) : (!b_cop) -> vector<32x256xf16>
    "xetile.store_tile"(%a_0, %a_slm_0) : (vector<256x32xf16>, !a_st) -> ()
    "xetile.store_tile"(%b_0, %b_slm_0) : (vector<32x256xf16>, !b_st) -> ()
    %a_global_32 = "xetile.init_tile"(%a, %i, %c32)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_cop
    %b_global_32 = "xetile.init_tile"(%b, %c32, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_cop
    %a_slm_32 = "xetile.init_tile"(%slm_a, %c0, %c32)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<256x128xf16, 3>, index, index) -> !a_st
    %b_slm_32 = "xetile.init_tile"(%slm_b, %c32, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x256xf16, 3>, index, index) -> !b_st
    %a_32 = "xetile.load_tile"(%a_global_32) : (!a_cop) -> vector<256x32xf16>
    %b_32 = "xetile.load_tile"(%b_global_32) : (!b_cop) -> vector<32x256xf16>
    "xetile.store_tile"(%a_32, %a_slm_32) : (vector<256x32xf16>, !a_st) -> ()
    "xetile.store_tile"(%b_32, %b_slm_32) : (vector<32x256xf16>, !b_st) -> ()
    %a_global_64 = "xetile.init_tile"(%a, %i, %c64)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_cop
    %b_global_64 = "xetile.init_tile"(%b, %c64, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_cop
    %a_slm_64 = "xetile.init_tile"(%slm_a, %c0, %c64)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<256x128xf16, 3>, index, index) -> !a_st
    %b_slm_64 = "xetile.init_tile"(%slm_b, %c64, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x256xf16, 3>, index, index) -> !b_st
    %a_64 = "xetile.load_tile"(%a_global_64) : (!a_cop) -> vector<256x32xf16>
    %b_64 = "xetile.load_tile"(%b_global_64) : (!b_cop) -> vector<32x256xf16>
    "xetile.store_tile"(%a_64, %a_slm_64) : (vector<256x32xf16>, !a_st) -> ()
    "xetile.store_tile"(%b_64, %b_slm_64) : (vector<32x256xf16>, !b_st) -> ()
    gpu.barrier
    %a_ahead = "xetile.init_tile"(%a, %i, %c96)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_cop
    %b_ahead = "xetile.init_tile"(%b, %c96, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b_cop
    %a_store = "xetile.init_tile"(%slm_a, %c0, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<256x128xf16, 3>, index, index) -> !a_st
    %b_store = "xetile.init_tile"(%slm_b, %c0, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x256xf16, 3>, index, index) -> !b_st
    %a_first = "xetile.init_tile"(%slm_a, %c0, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<256x128xf16, 3>, index, index) -> !a
    %b_first = "xetile.init_tile"(%slm_b, %c0, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<128x256xf16, 3>, index, index) -> !b
    %c_tile = "xetile.init_tile"(%c, %i, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x768xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<256x256xf32>
    %sum, %a_last, %b_last = scf.for %step = %c0 to %k step %c32
        iter_args(%acc = %zero, %a_global = %a_ahead, %b_global = %b_ahead)
        -> (vector<256x256xf32>, !a_cop, !b_cop) {
      // Cooperative load from global memory.
      %a_next = "xetile.load_tile"(%a_global) : (!a_cop) -> vector<256x32xf16>
      %b_next = "xetile.load_tile"(%b_global) : (!b_cop) -> vector<32x256xf16>
      // Load from shared local memory.
      %place = arith.remui %step, %c128 : index
      %a_here = "xetile.update_tile_offset"(%a_first, %c0, %place) : (!a, index, index) -> !a
      %b_here = "xetile.update_tile_offset"(%b_first, %place, %c0) : (!b, index, index) -> !b
      %va = "xetile.load_tile"(%a_here) : (!a) -> vector<256x32xf16>
      %vb = "xetile.load_tile"(%b_here) : (!b) -> vector<32x256xf16>
      %vc = "xetile.tile_mma"(%va, %vb, %acc) {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map = #mp_c}
        : (vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32>) -> vector<256x256xf32>
      gpu.barrier
      // Cooperative store to shared local memory.
      %ahead = arith.addi %step, %c96 : index
      %free = arith.remui %ahead, %c128 : index
      %a_to = "xetile.update_tile_offset"(%a_store, %c0, %free) : (!a_st, index, index) -> !a_st
      %b_to = "xetile.update_tile_offset"(%b_store, %free, %c0) : (!b_st, index, index) -> !b_st
      "xetile.store_tile"(%a_next, %a_to) : (vector<256x32xf16>, !a_st) -> ()
      "xetile.store_tile"(%b_next, %b_to) : (vector<32x256xf16>, !b_st) -> ()
      %a_global_next = "xetile.update_tile_offset"(%a_global, %c0, %c32) : (!a_cop, index, index) -> !a_cop
      %b_global_next = "xetile.update_tile_offset"(%b_global, %c32, %c0) : (!b_cop, index, index) -> !b_cop
      scf.yield %vc, %a_global_next, %b_global_next : vector<256x256xf32>, !a_cop, !b_cop
    }
    "xetile.store_tile"(%sum, %c_tile) : (vector<256x256xf32>, !c) -> ()
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
