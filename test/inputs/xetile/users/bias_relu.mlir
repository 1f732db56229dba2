// A product with a scaled row added, negative numbers made zero, and rounded to f16: tiles divide neither matrix.
#w = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 64]}>
#wa = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 32]}>
#wb = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [32, 64]}>
#wr = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [1, 64]}>
!h = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{wg = #w}>>
!a = !xetile.tile<vector<32x32xf16>, #xetile.tile_attr<{wg = #wa}>>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{wg = #wb}>>
!r = !xetile.tile<vector<1x64xf32>, #xetile.tile_attr<{wg = #wr}>>
func.func @gemm(%a: memref<40x64xf16>, %b: memref<64x72xf16>, %r: memref<1x72xf32>, %y: memref<40x72xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %t = arith.constant 32 : index
  %gx0 = arith.constant 2 : index
  %gy0 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %gx0, %gy = %gy0, %gz = %c1)
             threads(%thx, %thy, %thz) in (%tbx = %t, %tby = %c1, %tbz = %c1) {
    %i = arith.muli %by, %c32 : index
    %j = arith.muli %bx, %c64 : index
    %ta = "xetile.init_tile"(%a, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x64xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%b, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<64x72xf16>, index, index) -> !b
    %tr = "xetile.init_tile"(%r, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<1x72xf32>, index, index) -> !r
    %ty = "xetile.init_tile"(%y, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x72xf16>, index, index) -> !h
    %z = arith.constant dense<0.0> : vector<32x64xf32>
    %sum:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %z, %pa = %ta, %pb = %tb) -> (vector<32x64xf32>, !a, !b) {
      %va = "xetile.load_tile"(%pa) : (!a) -> vector<32x32xf16>
      %vb = "xetile.load_tile"(%pb) : (!b) -> vector<32x64xf16>
      %d = "xetile.tile_mma"(%va, %vb, %acc) {wg_map = #w} : (vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>) -> vector<32x64xf32>
      %na = "xetile.update_tile_offset"(%pa, %c0, %c32) : (!a, index, index) -> !a
      %nb = "xetile.update_tile_offset"(%pb, %c32, %c0) : (!b, index, index) -> !b
      scf.yield %d, %na, %nb : vector<32x64xf32>, !a, !b
    }
    %vr = "xetile.load_tile"(%tr) : (!r) -> vector<1x64xf32>
    %two = arith.constant {wg_map = #wr} dense<2.0> : vector<1x64xf32>
    %vr2 = arith.mulf %vr, %two {wg_map = #wr} : vector<1x64xf32>
    %vb2 = "xetile.broadcast"(%vr2) {dims = [0], wg_map = #w} : (vector<1x64xf32>) -> vector<32x64xf32>
    %e = arith.addf %sum#0, %vb2 {wg_map = #w} : vector<32x64xf32>
    %zz = arith.constant {wg_map = #w} dense<0.0> : vector<32x64xf32>
    %m = arith.maximumf %e, %zz {wg_map = #w} : vector<32x64xf32>
    %h = arith.truncf %m {wg_map = #w} : vector<32x64xf32> to vector<32x64xf16>
    "xetile.store_tile"(%h, %ty) : (vector<32x64xf16>, !h) -> ()

    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
