// A tile that begins before its matrix in both dimensions: a padding of 7 takes the place of the elements before.
func.func @gemm(%x: memref<40x64xf32>, %y: memref<40x64xf32>) {
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
    %m5 = arith.constant -5 : index
    %i5 = arith.addi %i, %m5 : index
    %t1 = "xetile.init_tile"(%x, %i5, %m5) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x64xf32>, index, index) -> !xetile.tile<vector<32x64xf32>, unit>
    %t2 = "xetile.init_tile"(%y, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<40x64xf32>, index, index) -> !xetile.tile<vector<32x64xf32>, unit>
    %v = "xetile.load_tile"(%t1) {padding = 7.0 : f32} : (!xetile.tile<vector<32x64xf32>, unit>) -> vector<32x64xf32>
    "xetile.store_tile"(%v, %t2) : (vector<32x64xf32>, !xetile.tile<vector<32x64xf32>, unit>) -> ()

    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
