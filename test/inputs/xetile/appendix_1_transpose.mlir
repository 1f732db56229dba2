// Appendix 1 of the RFC, the third use: B is in memory as its transpose, and its tiles are transposed after the
// load.
//
// The program is at subgroup level: a work-group is one subgroup, which computes a tile of C. The RFC adds in bf16.
!a = !xetile.tile<vector<64x32xbf16>, unit>
!b = !xetile.tile<vector<64x32xbf16>, unit>
!c = !xetile.tile<vector<64x64xf32>, unit>

func.func @gemm(%a: memref<512x160xbf16>, %b: memref<768x160xbf16>, %c: memref<512x768xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %a, %c0 : memref<512x160xbf16>
  %k = memref.dim %a, %c1 : memref<512x160xbf16>
  %n = memref.dim %b, %c0 : memref<768x160xbf16>
  %tiles_n = arith.ceildivui %n, %c64 : index
  %tiles_m = arith.ceildivui %m, %c64 : index
  %threads = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %tiles_n, %gy = %tiles_m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1) {
    %i = arith.muli %y, %c64 : index
    %j = arith.muli %x, %c64 : index
    %a_tile = "xetile.init_tile"(%a, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xbf16>, index, index) -> !a
    %b_tile = "xetile.init_tile"(%b, %j, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<768x160xbf16>, index, index) -> !b
    %c_tile = "xetile.init_tile"(%c, %i, %j)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x768xf32>, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %sum, %a_last, %b_last = scf.for %step = %c0 to %k step %c32
        iter_args(%acc = %zero, %ta = %a_tile, %tb = %b_tile) -> (vector<64x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ta) : (!a) -> vector<64x32xbf16>
      %vbt = "xetile.load_tile"(%tb) : (!b) -> vector<64x32xbf16>
      %vb = "xetile.transpose"(%vbt) {permutation = [1, 0]} : (vector<64x32xbf16>) -> vector<32x64xbf16>
      %vc = "xetile.tile_mma"(%va, %vb, %acc)
        : (vector<64x32xbf16>, vector<32x64xbf16>, vector<64x64xf32>) -> vector<64x64xf32>
      %ta_next = "xetile.update_tile_offset"(%ta, %c0, %c32) : (!a, index, index) -> !a
      %tb_next = "xetile.update_tile_offset"(%tb, %c0, %c32) : (!b, index, index) -> !b
      scf.yield %vc, %ta_next, %tb_next : vector<64x64xf32>, !a, !b
    }
    "xetile.store_tile"(%sum, %c_tile) : (vector<64x64xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

func.func @golden(%a: tensor<512x160xbf16>, %b: tensor<768x160xbf16>, %c: tensor<512x768xf32>) -> tensor<512x768xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<512x768xf32>) -> tensor<512x768xf32>
  %d = linalg.matmul indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (j, l)>,
                                       affine_map<(i, j, l) -> (i, j)>]
    ins(%a, %b : tensor<512x160xbf16>, tensor<768x160xbf16>)
    outs(%init : tensor<512x768xf32>) -> tensor<512x768xf32>
  return %d : tensor<512x768xf32>
}
