// C = C + AB, where two work-groups share the sum of a tile: each adds its part to C with atomic updates.
#mp_a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
#mp_b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#mp_c = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
!a = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a}>>
!b = !xetile.tile<vector<32x256xf16>, #xetile.tile_attr<{wg = #mp_b}>>
!c = !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #mp_c}>>

func.func @gemm(%a: memref<512x160xf16>, %b: memref<160x768xf16>, %c: memref<512x768xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %m = memref.dim %a, %c0 : memref<512x160xf16>
  %k = memref.dim %a, %c1 : memref<512x160xf16>
  %n = memref.dim %b, %c1 : memref<160x768xf16>
  %tiles_n = arith.ceildivui %n, %c256 : index
  %tiles_m = arith.ceildivui %m, %c256 : index
  %steps = arith.ceildivui %k, %c64 : index
  %half = arith.muli %steps, %c32 : index
  %threads = arith.constant 512 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %tiles_n, %gy = %tiles_m, %gz = %c2)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c256 : index
    %j = arith.muli %x, %c256 : index
    %first = arith.muli %z, %half : index
    %end = arith.addi %first, %half : index
    %a_tile = "xetile.init_tile"(%a, %i, %first)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a
    %b_tile = "xetile.init_tile"(%b, %first, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<160x768xf16>, index, index) -> !b
    %c_tile = "xetile.init_tile"(%c, %i, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x768xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<256x256xf32>
    %sum, %a_last, %b_last = scf.for %step = %first to %end step %c32
        iter_args(%acc = %zero, %ta = %a_tile, %tb = %b_tile) -> (vector<256x256xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ta) : (!a) -> vector<256x32xf16>
      %vb = "xetile.load_tile"(%tb) : (!b) -> vector<32x256xf16>
      %vc = "xetile.tile_mma"(%va, %vb, %acc) {wg_map = #mp_c}
        : (vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32>) -> vector<256x256xf32>
      %ta_next = "xetile.update_tile_offset"(%ta, %c0, %c32) : (!a, index, index) -> !a
      %tb_next = "xetile.update_tile_offset"(%tb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %vc, %ta_next, %tb_next : vector<256x256xf32>, !a, !b
    }
    %before = "xetile.atomic_rmw"(%sum, %c_tile) {kind = "addf"} : (vector<256x256xf32>, !c) -> vector<256x256xf32>
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

func.func @golden(%a: tensor<512x160xf16>, %b: tensor<160x768xf16>, %c: tensor<512x768xf32>) -> tensor<512x768xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<512x160xf16>, tensor<160x768xf16>)
    outs(%c : tensor<512x768xf32>) -> tensor<512x768xf32>
  return %d : tensor<512x768xf32>
}
