// A column-major tile of f32 less its row sums: the hardware transposes the blocks that it loads.
func.func @gemm(%x: memref<64x40xf32>, %y: memref<40x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %t = arith.constant 16 : index
  %gx0 = arith.constant 1 : index
  %gy0 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %gx0, %gy = %gy0, %gz = %c1)
             threads(%thx, %thy, %thz) in (%tbx = %t, %tby = %c1, %tbz = %c1) {
    %i = arith.muli %by, %c32 : index
    %j = arith.muli %bx, %c64 : index
    %xv = memref.transpose %x (i, j) -> (j, i) : memref<64x40xf32> to memref<40x64xf32, strided<[1, 40]>>
    %t1 = "xetile.init_tile"(%xv, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x64xf32, strided<[1, 40]>>, index, index) -> !xetile.tile<vector<32x64xf32>, #xetile.tile_attr<{order = [0, 1]}>>
    %t2 = "xetile.init_tile"(%y, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x64xf32>, index, index) -> !xetile.tile<vector<32x64xf32>, unit>
    %v = "xetile.load_tile"(%t1) : (!xetile.tile<vector<32x64xf32>, #xetile.tile_attr<{order = [0, 1]}>>) -> vector<32x64xf32>
    %m = "xetile.reduction"(%v) {kind = #vector.kind<add>, dims = [1]} : (vector<32x64xf32>) -> vector<32x1xf32>
    %mb = "xetile.broadcast"(%m) {dims = [1]} : (vector<32x1xf32>) -> vector<32x64xf32>
    %e = arith.subf %v, %mb : vector<32x64xf32>
    "xetile.store_tile"(%e, %t2) : (vector<32x64xf32>, !xetile.tile<vector<32x64xf32>, unit>) -> ()

    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
