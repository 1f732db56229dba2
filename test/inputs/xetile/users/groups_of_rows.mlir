// Sums of eight rows each, which are stored, and added to those rows.
!x = !xetile.tile<vector<16x32xf32>, unit>
!r = !xetile.tile<vector<2x32xf32>, unit>
func.func @gemm(%x: memref<24x40xf32>, %sums: memref<4x40xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %i = arith.muli %by, %c16 : index
    %j = arith.muli %bx, %c32 : index
    %pair = arith.muli %by, %c2 : index
    %tile = "xetile.init_tile"(%x, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x40xf32>, index, index) -> !x
    %tile_sums = "xetile.init_tile"(%sums, %pair, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<4x40xf32>, index, index) -> !r
    %v = "xetile.load_tile"(%tile) : (!x) -> vector<16x32xf32>
    %r = "xetile.reduction"(%v) {kind = #vector.kind<add>, dims = [0], reduction_size = [8]} : (vector<16x32xf32>) -> vector<2x32xf32>
    "xetile.store_tile"(%r, %tile_sums) : (vector<2x32xf32>, !r) -> ()
    %back = "xetile.broadcast"(%r) {dims = [0], broadcast_size = [8]} : (vector<2x32xf32>) -> vector<16x32xf32>
    %after = arith.addf %back, %v : vector<16x32xf32>
    "xetile.store_tile"(%after, %tile) : (vector<16x32xf32>, !x) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
