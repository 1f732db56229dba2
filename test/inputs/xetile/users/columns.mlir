// Elements of columns: a loaded column is added to rows, groups of 32 columns are reduced, and a column of counters is
// updated atomically, whose old numbers are stored to another one.
!x = !xetile.tile<vector<16x64xi32>, unit>
!column = !xetile.tile<vector<16x1xi32>, unit>
!pair = !xetile.tile<vector<16x2xi32>, unit>
func.func @gemm(%x: memref<24x72xi32>, %bias: memref<24x3xi32>, %counters: memref<24x1xi32>, %old: memref<24x1xi32>,
    %groups: memref<24x2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %i = arith.muli %by, %c16 : index
    %tile = "xetile.init_tile"(%x, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x72xi32>, index, index) -> !x
    %v = "xetile.load_tile"(%tile) {padding = 3} : (!x) -> vector<16x64xi32>
    %tile_bias = "xetile.init_tile"(%bias, %i, %c2) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x3xi32>, index, index) -> !column
    %b = "xetile.load_tile"(%tile_bias) {padding = 5} : (!column) -> vector<16x1xi32>
    %wide = "xetile.broadcast"(%b) {dims = [1]} : (vector<16x1xi32>) -> vector<16x64xi32>
    %sum = arith.addi %v, %wide : vector<16x64xi32>
    %r = "xetile.reduction"(%sum) {kind = #vector.kind<maxsi>, dims = [1], reduction_size = 32} : (vector<16x64xi32>) -> vector<16x2xi32>
    %two = arith.constant dense<2> : vector<16x2xi32>
    %twice = arith.muli %r, %two : vector<16x2xi32>
    %tile_groups = "xetile.init_tile"(%groups, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x2xi32>, index, index) -> !pair
    "xetile.store_tile"(%twice, %tile_groups) : (vector<16x2xi32>, !pair) -> ()
    %back = "xetile.broadcast"(%twice) {dims = [1], broadcast_size = 32} : (vector<16x2xi32>) -> vector<16x64xi32>
    %less = arith.subi %sum, %back : vector<16x64xi32>
    "xetile.store_tile"(%less, %tile) : (vector<16x64xi32>, !x) -> ()
    %tile_counters = "xetile.init_tile"(%counters, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x1xi32>, index, index) -> !column
    %before = "xetile.atomic_rmw"(%b, %tile_counters) {kind = "maxs"} : (vector<16x1xi32>, !column) -> vector<16x1xi32>
    %tile_old = "xetile.init_tile"(%old, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x1xi32>, index, index) -> !column
    "xetile.store_tile"(%before, %tile_old) : (vector<16x1xi32>, !column) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
