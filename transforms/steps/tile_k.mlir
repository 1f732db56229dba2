// Tiles the reduction by block_k, so that the operand tiles of one step fit in shared memory.
//
// The loop over k is the main loop of the kernel. A larger block_k gives fewer barriers and longer runs of tensor-core
// instructions between them. A smaller block_k leaves shared memory for larger tiles, more stages, or a higher
// occupancy.
//
// A pair of products of one A, which `gather_products` has moved together, gets one loop.
//
// In a pipeline with `whole_tiles` block_k must divide k. In other pipelines an earlier step has padded A and B.
//
// Source: CC'22, algorithm 1, the loop over threadBlockK.
//
// Before:
//   linalg.matmul ins(%a_rows, %b_columns : tensor<128x512xf16>, tensor<512x128xf16>) outs(%c_tile : ...)
// After, with block_k = 32:
//   scf.for %k = 0 to 512 step 32 iter_args(%c = %c_tile) {
//     %a_tile = tensor.extract_slice %a_rows[0, %k] [128, 32]
//     %b_tile = tensor.extract_slice %b_columns[%k, 0] [32, 128]
//     linalg.matmul ins(%a_tile, %b_tile : ...) outs(%c : tensor<128x128xf32>)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @tile_k(%module: !transform.any_op {transform.readonly},
      %block_k: !transform.param<i64> {transform.readonly})
      attributes {requires = [
        {condition = "k % block_k == 0 or not whole_tiles", message = "k must be a multiple of block_k"}
      ]} {
    // Tile size 0 leaves a dimension untiled: only k is tiled.
    %matmuls = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %k_loops = transform.foreach %matmuls : !transform.any_op -> !transform.any_op {
    ^bb0(%matmul: !transform.any_op):
      %tile, %k_loop = transform.structured.tile_using_for %matmul tile_sizes [0, 0, %block_k]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      transform.yield %k_loop : !transform.any_op
    }
    // A pair of products has one loop, which reads each tile of A once.
    transform.tune.alternatives<"pair"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} {
    }, {
      // Only loops whose bounds are the same SSA values are fused.
      %tiled = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.apply_cse to %tiled : !transform.any_op
      %first, %second = transform.split_handle %k_loops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      %both = transform.loop.fuse_sibling %first into %second
        : (!transform.any_op, !transform.any_op) -> !transform.any_op
    }

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
