// Cuts C into tiles of block_m x block_n, one for each thread block of the grid.
//
// The first of the two levels of tiling: tiles of C are independent, so blocks never talk to each other. A larger tile
// reads less of A and B in all (each element of A is read n / block_n times, each of B m / block_m times), and a
// smaller one makes more blocks, which a small problem needs to fill the card. Where C = AB starts from a
// `linalg.fill`, the fill is fused into the tile: it then zeroes registers, not memory. Where the sums are rounded to
// C's type, it is the rounding that is tiled, and the matmul is fused: a tile is rounded while it is at hand.
//
// In a pipeline of `whole_tiles` the tiles have to divide C. Without, those at its edges are smaller, by `affine.min`.
//
// Source: CC'22, "Tiling and Creating Shared Memory Buffers" (section 3.2), the thread-block level.
//
// Before:
//   %product = linalg.matmul ins(%a, %b : ...) outs(%c : tensor<512x512xf32>)
// After, with block_m = block_n = 128:
//   scf.forall (%i, %j) in (4, 4) shared_outs(%c_in = %c) {
//     %a_rows = tensor.extract_slice %a[%i * 128, 0] [128, 512]
//     %b_columns = tensor.extract_slice %b[0, %j * 128] [512, 128]
//     %c_tile = tensor.extract_slice %c_in[%i * 128, %j * 128] [128, 128]
//     linalg.matmul ins(%a_rows, %b_columns : ...) outs(%c_tile : tensor<128x128xf32>)
//   } {mapping = [#gpu.block<y>, #gpu.block<x>]}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @tile_to_blocks(%module: !transform.any_op {transform.readonly},
      %block_m: !transform.param<i64> {transform.readonly}, %block_n: !transform.param<i64> {transform.readonly})
      attributes {requires = [
        {condition = "form == 'normal' or normalizes",
         message = "the payload must be in the form that normalize_payload makes, on tensors between buffers"},
        {condition = "acc_type == c_type or rounds_c", message = "C must have the element type of the accumulators"},
        {condition = "m % block_m == 0 or not whole_tiles", message = "m must be a multiple of block_m"},
        {condition = "n % block_n == 0 or not whole_tiles", message = "n must be a multiple of block_n"}
      ]} {
    // What C is written from: the matmul, or the rounding of its sums.
    %store = transform.structured.match ops{["bufferization.materialize_in_destination"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %last = transform.get_producer_of_operand %store[0] : (!transform.any_op) -> !transform.any_op
    %tile, %blocks = transform.structured.tile_using_forall %last tile_sizes [%block_m, %block_n]
      (mapping = [#gpu.block<y>, #gpu.block<x>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)

    // The sums that a rounding reads. An empty handle, and nothing to fuse, where there is none.
    %rounding = transform.select "linalg.generic" in %tile : (!transform.any_op) -> !transform.any_op
    %slice = transform.get_producer_of_operand %rounding[0] : (!transform.any_op) -> !transform.any_op
    %sums = transform.get_producer_of_operand %slice[0] : (!transform.any_op) -> !transform.any_op
    %sums_tile, %with_sums = transform.structured.fuse_into_containing_op %sums into %blocks
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)

    // C = AB: the zeros that the accumulator starts from. An empty handle, and nothing to fuse, for C = AB + C.
    %fill = transform.structured.match ops{["linalg.fill"]} in %module : (!transform.any_op) -> !transform.any_op
    %fill_tile, %fused = transform.structured.fuse_into_containing_op %fill into %blocks
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
