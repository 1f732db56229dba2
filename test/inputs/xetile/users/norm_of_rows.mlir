// Rows divided by the sum of their squares, which are stored to a column.
#w = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 64]}>
#wc = #xetile.wg_map<{sg_layout = [2, 1], sg_data = [16, 1]}>
!x = !xetile.tile<vector<32x64xf32>, #xetile.tile_attr<{wg = #w}>>
!c = !xetile.tile<vector<32x1xf32>, #xetile.tile_attr<{wg = #wc}>>
func.func @gemm(%x: memref<40x72xf32>, %s: memref<40x1xf32>, %y: memref<40x72xf32>) {
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
    %tx = "xetile.init_tile"(%x, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x72xf32>, index, index) -> !x
    %ty = "xetile.init_tile"(%y, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x72xf32>, index, index) -> !x
    %ts = "xetile.init_tile"(%s, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x1xf32>, index, index) -> !c
    %v = "xetile.load_tile"(%tx) : (!x) -> vector<32x64xf32>
    %q = arith.mulf %v, %v {wg_map = #w} : vector<32x64xf32>
    %r = "xetile.reduction"(%q) {kind = #vector.kind<add>, dims = [1], wg_map = #wc} : (vector<32x64xf32>) -> vector<32x1xf32>
    %f = arith.constant {wg_map = #wc} dense<1.0> : vector<32x1xf32>
    %r1 = arith.addf %r, %f {wg_map = #wc} : vector<32x1xf32>
    "xetile.store_tile"(%r1, %ts) : (vector<32x1xf32>, !c) -> ()
    %b = "xetile.broadcast"(%r1) {dims = [1], wg_map = #w} : (vector<32x1xf32>) -> vector<32x64xf32>
    %d = arith.divf %v, %b {wg_map = #w} : vector<32x64xf32>
    "xetile.store_tile"(%d, %ty) : (vector<32x64xf32>, !x) -> ()

    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
