// Allocates a shared-memory tile for the product of a block that an elementwise op consumes.
//
// The matmul then accumulates in a separate buffer of the accumulators' type; the consumer reads that buffer and writes
// C. Without a consumer the matmul accumulates in C itself, and the step changes nothing.
//
// In `mma_sync`, the tile is a placeholder: `convert_to_mma_sync` replaces it by registers, so that it takes no shared
// memory. In `wmma`, the tile remains, because the layout of WMMA's fragments is not documented:
// `map_consumer_to_lanes` distributes the consumer over the threads, which read the tile.
//
// The attribute `operand_c` marks the tile and the consumer for later steps.
//
// Source: as `stage_c_in_shared_memory`, for whole tiles.
//
// Before:
//   %sums = linalg.matmul ins(%a_rows, %b_columns : ...) outs(%zeros : tensor<128x128xf32>)
//   %relu = linalg.generic ins(%sums : ...) outs(%c_tile : tensor<128x128xf16>)
// After:
//   %tile = memref.alloc() {operand_c} : memref<128x128xf32, #gpu.address_space<workgroup>>
//   linalg.fill ins(0) outs(%tile)
//   %start = bufferization.to_tensor %tile
//   %sums = linalg.matmul ins(%a_rows, %b_columns : ...) outs(%start : tensor<128x128xf32>)
//   %relu = linalg.generic {operand_c} ins(%sums : ...) outs(%c_tile : tensor<128x128xf16>)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stage_accumulators_in_shared_memory(%module: !transform.any_op {transform.readonly}) {
    transform.tune.alternatives<"has_consumer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_consumer"}} {
    }, {
      %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
      %start = transform.get_producer_of_operand %matmul[2] : (!transform.any_op) -> !transform.any_op
      // `bufferize_to_allocation` crashes for an op that cannot be bufferized, such as one that reads a buffer.
      %fill = transform.cast %start : !transform.any_op to !transform.op<"linalg.fill">
      %buffer, %ops = transform.structured.bufferize_to_allocation %fill {
          memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
        } : !transform.op<"linalg.fill">
      %alloc = transform.select "memref.alloc" in %ops : (!transform.any_op) -> !transform.any_op
      transform.annotate %alloc "operand_c" : !transform.any_op
      %consumer = transform.structured.match ops{["linalg.generic"]} in %module
        : (!transform.any_op) -> !transform.any_op
      transform.annotate %consumer "operand_c" : !transform.any_op

      %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
