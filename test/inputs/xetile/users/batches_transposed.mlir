// C = A^T B^T for two matrices each, of memrefs with three dimensions. B is a column-major view, A is transposed in
// registers, and C is of dynamic shape.
!a = !xetile.tile<vector<16x16xf16>, unit>
!b = !xetile.tile<vector<16x32xf16>, #xetile.tile_attr<{order = [0, 1]}>>
!c = !xetile.tile<vector<16x32xf32>, unit>
func.func @gemm(%a: memref<2x32x40xf16>, %b: memref<2x40x32xf16>, %c: memref<2x40x40xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c1600 = arith.constant 1600 : index
  %view = memref.transpose %b (z, i, j) -> (z, j, i) : memref<2x40x32xf16> to memref<2x32x40xf16, strided<[1280, 1, 32]>>
  %dynamic = memref.cast %c : memref<2x40x40xf32> to memref<?x?x?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c3, %gz = %c2)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %i = arith.muli %by, %c16 : index
    %j = arith.muli %bx, %c32 : index
    %a_tile = "xetile.init_tile"(%a, %bz, %c0, %i) {operandSegmentSizes = array<i32: 1, 3, 0, 0>} : (memref<2x32x40xf16>, index, index, index) -> !a
    %b_tile = "xetile.init_tile"(%view, %bz, %c0, %j) {operandSegmentSizes = array<i32: 1, 3, 0, 0>} : (memref<2x32x40xf16, strided<[1280, 1, 32]>>, index, index, index) -> !b
    %c_tile = "xetile.init_tile"(%dynamic, %bz, %i, %j, %c2, %c40, %c40, %c1600, %c40, %c1) {operandSegmentSizes = array<i32: 1, 3, 3, 3>}
      : (memref<?x?x?xf32>, index, index, index, index, index, index, index, index, index) -> !c
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %sum, %a_last, %b_last = scf.for %k = %c0 to %c32 step %c16
        iter_args(%acc = %zero, %ta = %a_tile, %tb = %b_tile) -> (vector<16x32xf32>, !a, !b) {
      %va = "xetile.load_tile"(%ta) : (!a) -> vector<16x16xf16>
      %turned = "xetile.transpose"(%va) {permutation = [1, 0]} : (vector<16x16xf16>) -> vector<16x16xf16>
      %vb = "xetile.load_tile"(%tb) : (!b) -> vector<16x32xf16>
      %d = "xetile.tile_mma"(%turned, %vb, %acc) : (vector<16x16xf16>, vector<16x32xf16>, vector<16x32xf32>) -> vector<16x32xf32>
      %ta_next = "xetile.update_tile_offset"(%ta, %c16, %c0) : (!a, index, index) -> !a
      %tb_next = "xetile.update_tile_offset"(%tb, %c16, %c0) : (!b, index, index) -> !b
      scf.yield %d, %ta_next, %tb_next : vector<16x32xf32>, !a, !b
    }
    "xetile.store_tile"(%sum, %c_tile) : (vector<16x32xf32>, !c) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}
