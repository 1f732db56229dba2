// Tiles C into thread-block tiles of block_m x block_n.
//
// This is the first of two levels of tiling. Tiles of C are independent, so that blocks need no communication. A larger
// tile reads less of A and B in total: each element of A is read n / block_n times, each element of B m / block_m
// times. A smaller tile gives more blocks, which a small problem needs to occupy all multiprocessors. For C = AB the
// step fuses the `linalg.fill` into the tile, where it initializes registers instead of memory. If an elementwise op
// consumes the product or rounds it to C's type, the step tiles that op and fuses the matmul into it, so that the op
// reads registers.
//
// In a batch, a block computes a tile of one matmul: the step tiles the batch by 1 and maps it to z, and
// `drop_batch_dimension` makes the product of the tile a plain matmul.
//
// In a pipeline with `whole_tiles` the tiles must divide C. In other pipelines the tiles at the edges are smaller, by
// `affine.min`.
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
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})
  transform.named_sequence private @drop_batch_dimension(!transform.any_op {transform.readonly})

  transform.named_sequence @tile_to_blocks(%module: !transform.any_op {transform.readonly},
      %block_m: !transform.param<i64> {transform.readonly}, %block_n: !transform.param<i64> {transform.readonly})
      attributes {requires = [
        {condition = "not has_producer or prepares",
         message = "A and B must be function arguments: producers are not supported"},
        {condition = "form == 'normal' or normalizes",
         message = "the payload must be in the form that normalize_payload produces, on tensors between buffers"},
        {condition = "not has_consumer or rounds_c",
         message = "C must have the accumulator type, and the matmul must have no elementwise consumers"},
        {condition = "windows == 0 or takes_windows",
         message = "A, B and C must be whole buffers, not parts of buffers"},
        {condition = "windows == 0 or windows_aligned",
         message = "rows of parts of buffers must begin at multiples of 16 bytes, and those of C also end there"},
        {condition = "read_batch_strides == 0 or reads_strided_batches",
         message = "a batch of A or B must have one stride; wgmma, mma_sync and wmma take several"},
        {condition = "products == 1 or takes_pairs",
         message = "the payload must have one product; wmma, mma_sync and wgmma* also accept a pair with the same A"},
        {condition = "m % block_m == 0 or not whole_tiles", message = "m must be a multiple of block_m"},
        {condition = "n % block_n == 0 or not whole_tiles", message = "n must be a multiple of block_n"},
        {condition = "(m + block_m - 1) // block_m <= 65535",
         message = "C must have at most 65535 rows of tiles, the maximum grid dimension y"},
        {condition = "(m + block_m - 1) // block_m * ((n + block_n - 1) // block_n) * batch <= 2147483647",
         message = "C must have at most 2147483647 tiles, the maximum number of blocks in a grid"},
        {condition = "batch <= 65535",
         message = "a batch must have at most 65535 matmuls, the maximum grid dimension z"},
        {condition = "not batched or m > 1 and n > 1 and k > 1",
         message = "m, n and k of a batch must be above 1: unit dimensions are dropped along with the batch's"}
      ]} {
    // Tiles the producer of C: the matmul, or the op that consumes its result. Rows of tiles map to y and columns to x,
    // the fastest dimension of the grid.
    %store = transform.structured.match ops{["bufferization.materialize_in_destination"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %stored = transform.get_producer_of_operand %store[0] : (!transform.any_op) -> !transform.any_op
    %makers = transform.tune.alternatives<"batch_strides"> selected_region = 0
        attributes {knobs = {selected_region_attr = "batch_strides > 1"}} -> !transform.any_op {
      transform.yield %stored : !transform.any_op
    }, {
      // The batch of C is divided before it is stored.
      %divided = transform.get_producer_of_operand %stored[0] : (!transform.any_op) -> !transform.any_op
      transform.yield %divided : !transform.any_op
    }
    // One op may have several results.
    %last = transform.merge_handles deduplicate %makers : !transform.any_op
    %tile, %blocks = transform.tune.alternatives<"batch"> selected_region = 0
        attributes {knobs = {selected_region_attr = "batched"}} -> !transform.any_op, !transform.any_op {
      %tiled, %loop = transform.structured.tile_using_forall %last tile_sizes [%block_m, %block_n]
        (mapping = [#gpu.block<y>, #gpu.block<x>])
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      transform.yield %tiled, %loop : !transform.any_op, !transform.any_op
    }, {
      %tiled, %loop = transform.structured.tile_using_forall %last tile_sizes [1, %block_m, %block_n]
        (mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>])
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      transform.yield %tiled, %loop : !transform.any_op, !transform.any_op
    }

    // Fuses the matmul whose result is consumed, or both of a pair. Without a consumer the handle is empty and nothing
    // is fused.
    %consumer = transform.select "linalg.generic" in %tile : (!transform.any_op) -> !transform.any_op
    %slice = transform.get_producer_of_operand %consumer[0] : (!transform.any_op) -> !transform.any_op
    %matmul = transform.get_producer_of_operand %slice[0] : (!transform.any_op) -> !transform.any_op
    %products = transform.tune.alternatives<"pair"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} -> !transform.any_op {
      transform.yield %matmul : !transform.any_op
    }, {
      %second_slice = transform.get_producer_of_operand %consumer[1] : (!transform.any_op) -> !transform.any_op
      %second = transform.get_producer_of_operand %second_slice[0] : (!transform.any_op) -> !transform.any_op
      %both = transform.merge_handles %matmul, %second : !transform.any_op
      transform.yield %both : !transform.any_op
    }
    %matmul_tile, %with_matmul = transform.structured.fuse_into_containing_op %products into %blocks
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)

    // C = AB: fuses the fill that initializes the accumulator. For C = AB + C the handle is empty and nothing is fused.
    %fill = transform.structured.match ops{["linalg.fill"]} in %module : (!transform.any_op) -> !transform.any_op
    %fill_tile, %fused = transform.structured.fuse_into_containing_op %fill into %blocks
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()

    transform.tune.alternatives<"drop_batch"> selected_region = 0
        attributes {knobs = {selected_region_attr = "batched"}} {
    }, {
      transform.include @drop_batch_dimension failures(propagate) (%module) : (!transform.any_op) -> ()
      %functions = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%functions) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
