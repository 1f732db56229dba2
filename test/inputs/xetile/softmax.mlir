// Softmax of the rows of a matrix with at most 256 columns, as after the product of a query and keys: a reduction for the
// maximum, elementwise ops on tile vectors, and a reduction for the sum.
//
// Columns beyond the matrix are padded with the smallest number, so that they have no part in the maximum or the sum.
#mp = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 256]}>
#mp_row = #xetile.wg_map<{sg_layout = [32, 1], sg_data = [8, 1]}>
!x = !xetile.tile<vector<256x256xf32>, #xetile.tile_attr<{wg = #mp}>>

func.func @softmax(%x: memref<512x160xf32>, %res: memref<512x160xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %m = memref.dim %x, %c0 : memref<512x160xf32>
  %tiles_m = arith.ceildivui %m, %c256 : index
  %threads = arith.constant 512 : index
  gpu.launch blocks(%block_x, %block_y, %block_z) in (%gx = %c1, %gy = %tiles_m, %gz = %c1)
             threads(%tx, %ty, %tz) in (%bx = %threads, %by = %c1, %bz = %c1) {
    %i = arith.muli %block_y, %c256 : index
    %x_tile = "xetile.init_tile"(%x, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf32>, index, index) -> !x
    %res_tile = "xetile.init_tile"(%res, %i, %c0)
      {operandSegmentSizes = array<i32: 1, 2, 0, 0>} : (memref<512x160xf32>, index, index) -> !x
    %v = "xetile.load_tile"(%x_tile) {padding = -3.0e38 : f32} : (!x) -> vector<256x256xf32>
    %largest = "xetile.reduction"(%v) {kind = #vector.kind<maximumf>, dims = [1], wg_map = #mp_row} : (vector<256x256xf32>) -> vector<256x1xf32>
    %shift = "xetile.broadcast"(%largest) {dims = [1], wg_map = #mp} : (vector<256x1xf32>) -> vector<256x256xf32>
    %less = arith.subf %v, %shift {wg_map = #mp} : vector<256x256xf32>
    %power = math.exp %less {wg_map = #mp} : vector<256x256xf32>
    %total = "xetile.reduction"(%power) {kind = #vector.kind<add>, dims = [1], wg_map = #mp_row} : (vector<256x256xf32>) -> vector<256x1xf32>
    %totals = "xetile.broadcast"(%total) {dims = [1], wg_map = #mp} : (vector<256x1xf32>) -> vector<256x256xf32>
    %share = arith.divf %power, %totals : vector<256x256xf32>
    "xetile.store_tile"(%share, %res_tile) : (vector<256x256xf32>, !x) -> ()
    gpu.terminator
  } {intel_reqd_sub_group_size = 16 : i32}
  return
}

func.func @golden(%x: tensor<512x160xf32>, %res: tensor<512x160xf32>) -> tensor<512x160xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<512xf32>
  %lowest = linalg.fill ins(%low : f32) outs(%rows : tensor<512xf32>) -> tensor<512xf32>
  %largest = linalg.reduce {arith.maximumf} ins(%x : tensor<512x160xf32>) outs(%lowest : tensor<512xf32>) dimensions = [1]
  %shift = linalg.broadcast ins(%largest : tensor<512xf32>) outs(%res : tensor<512x160xf32>) dimensions = [1]
  %less = linalg.sub ins(%x, %shift : tensor<512x160xf32>, tensor<512x160xf32>) outs(%res : tensor<512x160xf32>) -> tensor<512x160xf32>
  %power = linalg.exp ins(%less : tensor<512x160xf32>) outs(%res : tensor<512x160xf32>) -> tensor<512x160xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<512xf32>) -> tensor<512xf32>
  %total = linalg.reduce {arith.addf} ins(%power : tensor<512x160xf32>) outs(%none : tensor<512xf32>) dimensions = [1]
  %totals = linalg.broadcast ins(%total : tensor<512xf32>) outs(%res : tensor<512x160xf32>) dimensions = [1]
  %share = linalg.div ins(%power, %totals : tensor<512x160xf32>, tensor<512x160xf32>) outs(%res : tensor<512x160xf32>) -> tensor<512x160xf32>
  return %share : tensor<512x160xf32>
}
