// Tiles the elementwise op on the product into the warp tiles of the matmul.
//
// A warp then reads only the part of the product that it has computed itself, and needs no barrier. Without an
// elementwise op the step changes nothing.
//
// `tc.outline_consumer` then moves the op to a private function, which the launch calls with the tile of the product
// and the position of the warp's part in it. Inline, the op would prevent two upstream transformations: the hoisting of
// the accumulators (`hoist_accumulators`) skips a buffer that has a view, and the conversion to fragments
// (`convert_to_mma_sync`) fails at scalar arithmetic. `convert_to_mma_sync` and `map_consumer_to_lanes` replace the
// call by the op.
//
// Source: as `map_matmul_to_warps`.
//
// Before:
//   linalg.generic {operand_c} ins(%tile : memref<128x128xf32, ...>) outs(%c_tile : memref<128x128xf16, ...>)
// After, with warp_m = warp_n = 64:
//   func.call @consumer(%tile, %warp_row, %warp_column, %c_warp_tile) {operand_c}
//   func.func private @consumer(%tile: memref<128x128xf32, ...>, %row: index, %column: index, ...) {
//     %warp_tile = memref.subview %tile[%row, %column] [64, 64]
//     linalg.generic {operand_c} ins(%warp_tile : memref<64x64xf32, ...>) outs(%c : memref<64x64xf16, ...>) { ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_consumer_to_warps(%module: !transform.any_op {transform.readonly},
      %warp_m: !transform.param<i64> {transform.readonly}, %warp_n: !transform.param<i64> {transform.readonly}) {
    transform.tune.alternatives<"has_consumer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_consumer"}} {
    }, {
      %consumer = transform.structured.match ops{["linalg.generic"]} in %module
        : (!transform.any_op) -> !transform.any_op
      %tile, %warps = transform.structured.tile_using_forall %consumer tile_sizes [%warp_m, %warp_n]
        (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
      %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
        sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
        : (!transform.any_op) -> !transform.any_op
      "tc.outline_consumer"(%module) : (!transform.any_op) -> ()

      %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
