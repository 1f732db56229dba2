// Blocks are updated atomically, and the numbers that they held are used; the tiles reach beyond the matrix.
!x = !xetile.tile<vector<16x32xf32>, unit>
func.func @gemm(%x: memref<20x40xf32>, %sum: memref<20x40xf32>, %old: memref<20x40xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %i = arith.muli %by, %c16 : index
    %j = arith.muli %bx, %c32 : index
    %tile = "xetile.init_tile"(%x, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<20x40xf32>, index, index) -> !x
    %tile_sum = "xetile.init_tile"(%sum, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<20x40xf32>, index, index) -> !x
    %tile_old = "xetile.init_tile"(%old, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<20x40xf32>, index, index) -> !x
    %v = "xetile.load_tile"(%tile) : (!x) -> vector<16x32xf32>
    %w = "xetile.load_tile"(%tile_sum) : (!x) -> vector<16x32xf32>
    %both = arith.addf %v, %w : vector<16x32xf32>
    %before = "xetile.atomic_rmw"(%both, %tile_sum) {kind = "addf"} : (vector<16x32xf32>, !x) -> vector<16x32xf32>
    "xetile.store_tile"(%before, %tile_old) : (vector<16x32xf32>, !x) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
