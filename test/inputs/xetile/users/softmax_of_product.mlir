// Softmax of the rows of a product: the sums of tile_mma are reduced twice.
#w = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 64]}>
#wa = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 32]}>
#wb = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [32, 64]}>
#wc = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 1]}>
!x = !xetile.tile<vector<32x64xf32>, #xetile.tile_attr<{wg = #w}>>
!a = !xetile.tile<vector<32x32xf16>, #xetile.tile_attr<{wg = #wa}>>
!b = !xetile.tile<vector<32x64xf16>, #xetile.tile_attr<{wg = #wb}>>
func.func @gemm(%a: memref<40x32xf16>, %b: memref<32x64xf16>, %y: memref<40x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %t = arith.constant 32 : index
  %gx0 = arith.constant 1 : index
  %gy0 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %gx0, %gy = %gy0, %gz = %c1)
             threads(%thx, %thy, %thz) in (%tbx = %t, %tby = %c1, %tbz = %c1) {
    %i = arith.muli %by, %c32 : index
    %j = arith.muli %bx, %c64 : index
    %ta = "xetile.init_tile"(%a, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x32xf16>, index, index) -> !a
    %tb = "xetile.init_tile"(%b, %c0, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x64xf16>, index, index) -> !b
    %ty = "xetile.init_tile"(%y, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x64xf32>, index, index) -> !x
    %va = "xetile.load_tile"(%ta) : (!a) -> vector<32x32xf16>
    %vb = "xetile.load_tile"(%tb) : (!b) -> vector<32x64xf16>
    %s = "xetile.tile_mma"(%va, %vb) {wg_map = #w} : (vector<32x32xf16>, vector<32x64xf16>) -> vector<32x64xf32>
    %mx = "xetile.reduction"(%s) {kind = #vector.kind<maximumf>, dims = [1], wg_map = #wc} : (vector<32x64xf32>) -> vector<32x1xf32>
    %mb = "xetile.broadcast"(%mx) {dims = [1], wg_map = #w} : (vector<32x1xf32>) -> vector<32x64xf32>
    %l = arith.subf %s, %mb {wg_map = #w} : vector<32x64xf32>
    %e = math.exp %l {wg_map = #w} : vector<32x64xf32>
    %t2 = "xetile.reduction"(%e) {kind = #vector.kind<add>, dims = [1], wg_map = #wc} : (vector<32x64xf32>) -> vector<32x1xf32>
    %tb2 = "xetile.broadcast"(%t2) {dims = [1], wg_map = #w} : (vector<32x1xf32>) -> vector<32x64xf32>
    %d = arith.divf %e, %tb2 {wg_map = #w} : vector<32x64xf32>
    "xetile.store_tile"(%d, %ty) : (vector<32x64xf32>, !x) -> ()

    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
