// Distributes the op that writes C over the warps where tiles have edges: each warp writes the part of its tile inside
// C.
//
// As in `map_consumer_to_warps`, the op moves to a private function, which `convert_to_mma_sync` and
// `map_consumer_to_lanes` replace. The copy of C = AB is such an op too. The tile of C has dynamic extents, so that
// upstream cannot tile the op into the static warp tiles of the matmul; `tc.outline_masked_consumer` takes the warp's
// slice of each operand in the function.
//
// Stores are predicated per warp. Nearly all warp tiles are entirely inside C: these warps evaluate no further
// predicates and execute the stores of a kernel without edges. Where the row size of C is not a multiple of the vector
// size, single elements are stored.
//
// Source: as `map_consumer_to_warps`.
//
// Before:
//   %inside = memref.subview %tile[0, 0] [%rows, %columns]
//   linalg.generic {operand_c} ins(%inside : memref<?x?xf32, ...>) outs(%c_tile : memref<?x?xf16, ...>)
// After, with warp_m = warp_n = 64:
//   func.call @consumer(%tile, %warp_row, %warp_column, %c_tile) {operand_c, warp_tile = [64, 64]}
//   func.func private @consumer(%tile: memref<128x128xf32, ...>, %row: index, %column: index, %c: memref<?x?xf16>) {
//     %part_rows = affine.max(affine.min((memref.dim %c, 0) - %row, 64), 0)
//     %part = memref.subview %tile[%row, %column] [%part_rows, %part_columns]
//     %c_part = memref.subview %c[%row, %column] [%part_rows, %part_columns]
//     linalg.generic {operand_c} ins(%part : ...) outs(%c_part : ...) { ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_masked_consumer(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "hoist_accumulators",
         message = "tiles that do not divide m, n and k require accumulators in registers: hoist_accumulators must run"}
      ]} {
    "tc.outline_masked_consumer"(%module) {rows = 64 : i64, columns = 64 : i64,
        knobs = {rows = "warp_m", columns = "warp_n"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
