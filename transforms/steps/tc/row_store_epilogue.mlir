// Stores C through shared memory by whole rows, which may begin at any element (epilogue).
//
// TMA requires a row pitch that is a multiple of 16 bytes. With another pitch, such as 4095 elements of 16 bits, rows
// begin at any even address, and direct stores write them element by element: 2 bytes at a time, to eight rows at once.
// This epilogue collects the rows of a warp in shared memory and stores them along rows; each thread stores units of 16
// bytes that are aligned in C. Only the elements before the first and after the last aligned unit of a row are stored
// one by one.
//
// For 16-bit elements, the offset of the units within a row repeats after at most eight rows. A thread stores units of
// consecutive rows, so that the shift of each unit relative to the aligned vectors of the buffer is a compile-time
// constant, and the unit is a shuffle of two vectors. Each warp has a buffer for the 16 rows whose accumulators it
// holds. It does not synchronize with other warps, and in the ping-pong schedule the whole epilogue overlaps the main
// loop of the other warpgroup. Rows of a tile that reaches beyond C are stored element by element, adjacent threads
// adjacent elements.
//
// C = AB + C and elementwise ops read C, and operands with rows like those of C, in the same units; with elementwise
// ops, the buffer holds the sums.
//
// Before:
//   nvgpu.warpgroup.mma.store %acc, %buffer
//   linalg.copy ins(%buffer : ...) outs(%c_tile : memref<?x?xbf16, strided<[4095, 1], offset: ?>>)
// After, for each pass over 16 rows:
//   nvvm.stmatrix %row_address, %sums ...
//   nvvm.bar.warp.sync
//   scf.if %is_inside {
//     %held = memref.subview %rows[%row, %column] [8, 16] [1, 1]
//     %own = memref.subview %c_tile[%row, %column] [8, 15] [1, 1]
//     %left = vector.load %held[%c1, %c0] : vector<8xbf16>
//     %right = vector.load %held[%c1, %c8] : vector<8xbf16>
//     %unit = vector.shuffle %left, %right [1, 2, 3, 4, 5, 6, 7, 8]
//     vector.store %unit, %own[%c1, %c1]
//     ...
//   } else {
//     scf.for %row = 0 to 16 step 1 { scf.if %column < %columns { memref.store ... } }
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @row_store_epilogue(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "block_m == staged_m",
         message = "epilogue = rows requires block_m to be a multiple of 64, the rows of a wgmma"},
        {condition = "c_layout == 'row'", message = "epilogue = rows requires a row-major C"},
        {condition = "batch == 1 or m * n * result_bits % 128 == 0",
         message = "epilogue = rows requires a batch stride of C that is a multiple of 16 bytes"}
      ]} {
    "tc.row_store_epilogue"(%module) {lines = 2 : i64, warpgroups = 2 : i64,
      knobs = {lines = "epilogue_stages", warpgroups = "consumers"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
