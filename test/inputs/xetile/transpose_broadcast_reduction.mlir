// Appendix 2.2 of the RFC: row sums of A B^T + a row that is broadcast.
//
// The transpose exchanges data between subgroups. Each tile of C adds its row sums to the result with an atomic update:
// in the RFC the tiles of a row overwrite one another's.
#mp_a = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
#mp_a_pfh = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 32]}>
#mp_b = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#mp_bt = #xetile.wg_map<{sg_layout = [4, 8], sg_data = [64, 32]}>
#mp_bt_pfh = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 32]}>
#mp_c = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 64]}>
#mp_bcast = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [1, 64]}>
#mp_reduce = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 1]}>
#mp_reduce2 = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
!a = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a}>>
!bt = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_bt}>>
!a_pfh = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_a_pfh}>>
!bt_pfh = !xetile.tile<vector<256x32xf16>, #xetile.tile_attr<{wg = #mp_bt_pfh}>>
!bcast = !xetile.tile<vector<1x256xf32>, #xetile.tile_attr<{wg = #mp_bcast}>>
!reduce = !xetile.tile<vector<256x1xf32>, #xetile.tile_attr<{wg = #mp_reduce}>>

func.func @gemm(%a: memref<512x160xf16>, %bt: memref<768x160xf16>, %bcast: memref<768xf32>, %res: memref<512xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %c256 = arith.constant 256 : index
  %m = memref.dim %a, %c0 : memref<512x160xf16>
  %k = memref.dim %a, %c1 : memref<512x160xf16>
  %n = memref.dim %bt, %c0 : memref<768x160xf16>
  %tiles_n = arith.ceildivui %n, %c256 : index
  %tiles_m = arith.ceildivui %m, %c256 : index
  %bcast_row = memref.expand_shape %bcast [[0, 1]] output_shape [1, 768] : memref<768xf32> into memref<1x768xf32>
  %res_column = memref.expand_shape %res [[0, 1]] output_shape [512, 1] : memref<512xf32> into memref<512x1xf32>
  %threads = arith.constant 512 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %tiles_n, %gy = %tiles_m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c256 : index
    %j = arith.muli %x, %c256 : index
    %a_tile = "xetile.init_tile"(%a, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a
    %bt_tile = "xetile.init_tile"(%bt, %j, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<768x160xf16>, index, index) -> !bt
    %a_ahead = "xetile.init_tile"(%a, %i, %c192)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf16>, index, index) -> !a_pfh
    %bt_ahead = "xetile.init_tile"(%bt, %j, %c192)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<768x160xf16>, index, index) -> !bt_pfh
    %bcast_tile = "xetile.init_tile"(%bcast_row, %c0, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<1x768xf32>, index, index) -> !bcast
    %res_tile = "xetile.init_tile"(%res_column, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x1xf32>, index, index) -> !reduce
    %zero = arith.constant dense<0.0> : vector<256x256xf32>
    %sum, %a_last, %b_last, %pa_last, %pb_last = scf.for %step = %c0 to %k step %c32
        iter_args(%acc = %zero, %ta = %a_tile, %tb = %bt_tile, %pa = %a_ahead, %pb = %bt_ahead)
        -> (vector<256x256xf32>, !a, !bt, !a_pfh, !bt_pfh) {
      %va = "xetile.load_tile"(%ta) : (!a) -> vector<256x32xf16>
      %vbt = "xetile.load_tile"(%tb) : (!bt) -> vector<256x32xf16>
      %vb = "xetile.transpose"(%vbt) {permutation = [1, 0], wg_map = #mp_b, wg_map_source = #mp_bt}
        : (vector<256x32xf16>) -> vector<32x256xf16>
      "xetile.prefetch_tile"(%pa) {locality = 3 : i32} : (!a_pfh) -> ()
      "xetile.prefetch_tile"(%pb) {locality = 3 : i32} : (!bt_pfh) -> ()
      %vc = "xetile.tile_mma"(%va, %vb, %acc) {wg_map_a = #mp_a, wg_map_b = #mp_b, wg_map = #mp_c}
        : (vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32>) -> vector<256x256xf32>
      %ta_next = "xetile.update_tile_offset"(%ta, %c0, %c32) : (!a, index, index) -> !a
      %tb_next = "xetile.update_tile_offset"(%tb, %c0, %c32) : (!bt, index, index) -> !bt
      %pa_next = "xetile.update_tile_offset"(%pa, %c0, %c32) : (!a_pfh, index, index) -> !a_pfh
      %pb_next = "xetile.update_tile_offset"(%pb, %c0, %c32) : (!bt_pfh, index, index) -> !bt_pfh
      scf.yield %vc, %ta_next, %tb_next, %pa_next, %pb_next : vector<256x256xf32>, !a, !bt, !a_pfh, !bt_pfh
    }
    %row = "xetile.load_tile"(%bcast_tile) : (!bcast) -> vector<1x256xf32>
    %rows = "xetile.broadcast"(%row) {dims = [0], wg_map_source = #mp_bcast, wg_map = #mp_c}
      : (vector<1x256xf32>) -> vector<256x256xf32>
    %with_row = arith.addf %sum, %rows : vector<256x256xf32>
    // Columns beyond the matrix have no bias: the load of the row is zero there.
    %converted = "xetile.convert_layout"(%with_row) {wg_map_source = #mp_c, wg_map = #mp_reduce2}
      : (vector<256x256xf32>) -> vector<256x256xf32>
    %reduced = "xetile.reduction"(%converted)
      {kind = #vector.kind<add>, dims = [1], wg_map_source = #mp_reduce2, wg_map = #mp_reduce}
      : (vector<256x256xf32>) -> vector<256x1xf32>
    %before = "xetile.atomic_rmw"(%reduced, %res_tile) {kind = "addf"} : (vector<256x1xf32>, !reduce) -> vector<256x1xf32>
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

func.func @golden(%a: tensor<512x160xf16>, %bt: tensor<768x160xf16>, %bcast: tensor<768xf32>, %res: tensor<512xf32>) -> tensor<512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x768xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x768xf32>) -> tensor<512x768xf32>
  %product = linalg.matmul indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (j, l)>,
                                            affine_map<(i, j, l) -> (i, j)>]
    ins(%a, %bt : tensor<512x160xf16>, tensor<768x160xf16>) outs(%init : tensor<512x768xf32>) -> tensor<512x768xf32>
  %rows = linalg.broadcast ins(%bcast : tensor<768xf32>) outs(%empty : tensor<512x768xf32>) dimensions = [0]
  %sum = linalg.add ins(%product, %rows : tensor<512x768xf32>, tensor<512x768xf32>) outs(%empty : tensor<512x768xf32>)
    -> tensor<512x768xf32>
  %reduced = linalg.reduce {arith.addf} ins(%sum : tensor<512x768xf32>) outs(%res : tensor<512xf32>) dimensions = [1]
  return %reduced : tensor<512xf32>
}
