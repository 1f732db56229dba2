// C = 2 (-max(A, 0) B + C) in bf16, with sums in f32: elementwise ops on bf16 in front of the product and behind it.
!a = !xetile.tile<vector<16x32xbf16>, unit>
!b = !xetile.tile<vector<32x32xbf16>, unit>
!c = !xetile.tile<vector<16x32xbf16>, unit>
func.func @gemm(%a: memref<24x32xbf16>, %b: memref<32x40xbf16>, %c: memref<24x40xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %i = arith.muli %by, %c16 : index
    %j = arith.muli %bx, %c32 : index
    %a_tile = "xetile.init_tile"(%a, %i, %c0) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x32xbf16>, index, index) -> !a
    %b_tile = "xetile.init_tile"(%b, %c0, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<32x40xbf16>, index, index) -> !b
    %c_tile = "xetile.init_tile"(%c, %i, %j) {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<24x40xbf16>, index, index) -> !c
    %va = "xetile.load_tile"(%a_tile) : (!a) -> vector<16x32xbf16>
    %vb = "xetile.load_tile"(%b_tile) : (!b) -> vector<32x32xbf16>
    %vc = "xetile.load_tile"(%c_tile) : (!c) -> vector<16x32xbf16>
    %zero = arith.constant dense<0.0> : vector<16x32xbf16>
    %positive = arith.maximumf %va, %zero : vector<16x32xbf16>
    %negative = arith.negf %positive : vector<16x32xbf16>
    %wide = arith.extf %vc : vector<16x32xbf16> to vector<16x32xf32>
    %sum = "xetile.tile_mma"(%negative, %vb, %wide) : (vector<16x32xbf16>, vector<32x32xbf16>, vector<16x32xf32>) -> vector<16x32xf32>
    %rounded = arith.truncf %sum : vector<16x32xf32> to vector<16x32xbf16>
    %twice = arith.addf %rounded, %rounded : vector<16x32xbf16>
    "xetile.store_tile"(%twice, %c_tile) : (vector<16x32xbf16>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
