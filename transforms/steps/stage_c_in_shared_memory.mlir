// Allocates a shared-memory tile for the accumulator of a block, and pads A and B to whole tiles.
//
// The accumulator then has a single buffer of static shape throughout the k loop, even where the tile extends beyond C.
// The buffer is a placeholder: later steps keep the accumulator in registers, and an epilogue step erases the buffer,
// which only states the initial value and the destination. Without an epilogue step, a copy after the k loop writes C,
// or the op that consumes the product writes it. Tiles whose number of rows is not a multiple of 64 are padded to the
// next multiple for `wgmma` (`staged_m`).
//
// The copies are created by upstream's padding with `nofold`, which also keeps paddings of zero width. The padding of C
// becomes an allocation in this step. The paddings of A and B cover the whole reduction: `tile_k` slices them, and
// `stage_operands_in_shared_memory` converts them to copies. For C = AB, zeros padded with zeros become a larger fill,
// so that the kernel does not read C.
//
// The attribute `operand_c` marks the accumulator's buffer and the ops that read or write C, for later steps.
//
// Source: padding as in `stage_in_shared_memory`; `wgmma` instructions need an accumulator of a whole tile.
//
// Before, with m = n = k = 1000 and tiles of 128x256x64:
//   %c_tile = tensor.extract_slice %c[%row, %column] [%rows, %columns]
//   %zeros = linalg.fill ins(0) outs(%c_tile : tensor<?x?xf32>)
//   %product = linalg.matmul ins(%a_rows, %b_columns : tensor<?x1000xf16>, tensor<1000x?xf16>) outs(%zeros : ...)
// After:
//   %a_padded = tensor.pad %a_rows nofold high[128 - %rows, 24] : tensor<?x1000xf16> to tensor<128x1024xf16>
//   %b_padded = tensor.pad %b_columns nofold high[24, 256 - %columns] : tensor<1000x?xf16> to tensor<1024x256xf16>
//   %acc = memref.alloc() {operand_c} : memref<128x256xf32, #gpu.address_space<workgroup>>
//   linalg.fill ins(0) outs(%acc)                             // C = AB + C: also linalg.copy {operand_c} of %c_tile
//   %start = bufferization.to_tensor %acc
//   %whole = linalg.matmul ins(%a_padded, %b_padded) outs(%start : tensor<128x256xf32>)
//   %inside = tensor.extract_slice %whole[0, 0] [%rows, %columns]
//   linalg.copy {operand_c} ins(%inside : ...) outs(%c_tile : ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @stage_c_in_shared_memory(%module: !transform.any_op {transform.readonly},
      %block_m: !transform.param<i64> {transform.readonly}, %block_n: !transform.param<i64> {transform.readonly},
      %block_k: !transform.param<i64> {transform.readonly}) {
    // The matmul is padded to whole tiles. Either an op consumes its result, and no copy is needed, or the result is
    // written to C, by a copy back. One of the two handles is empty, and padding it does nothing.
    %store = transform.structured.match ops{["tensor.parallel_insert_slice"]} in %module
      : (!transform.any_op) -> !transform.any_op
    // Without tiles, `bufferize_to_allocation` below would get an op that reads a buffer, and crash.
    %stores = transform.num_associations %store : (!transform.any_op) -> !transform.param<i64>
    %one = transform.param.constant 1 : i64 -> !transform.param<i64>
    transform.match.param.cmpi ge %stores, %one : !transform.param<i64>
    %makers = transform.get_producer_of_operand %store[0] : (!transform.any_op) -> !transform.any_op
    %last = transform.merge_handles deduplicate %makers : !transform.any_op
    %consumer = transform.select "linalg.generic" in %last : (!transform.any_op) -> !transform.any_op
    %product = transform.get_producer_of_operand %consumer[0] : (!transform.any_op) -> !transform.any_op
    %consumed = transform.tune.alternatives<"pair"> selected_region = 0
        attributes {knobs = {selected_region_attr = "products == 2"}} -> !transform.any_op {
      transform.yield %product : !transform.any_op
    }, {
      %second = transform.get_producer_of_operand %consumer[1] : (!transform.any_op) -> !transform.any_op
      %both = transform.merge_handles %product, %second : !transform.any_op
      transform.yield %both : !transform.any_op
    }
    %consumed_matmul, %consumed_pads, %no_copy = transform.structured.pad %consumed
      pad_to_multiple_of [%block_m, %block_n, %block_k] {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 1], copy_back_op = "none"
      } : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %plain = transform.select "linalg.matmul" in %last : (!transform.any_op) -> !transform.any_op
    %plain_matmul, %pads, %copy = transform.structured.pad %plain pad_to_multiple_of [%block_m, %block_n, %block_k] {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 1], copy_back_op = "linalg.copy"
      } : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)

    // A fill of zeros padded with zeros folds to the fill of a whole tile. The extents of tiles of a batch, which are
    // slices of reduced rank, become those that the tiles were cut with.
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %tensors {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.memref.resolve_ranked_shaped_type_result_dims
    } : !transform.any_op

    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op

    // The paddings of a matrix times itself may be equal in a tile: the attributes keep CSE from making them one op,
    // which would be one allocation for A and B.
    %a = transform.get_producer_of_operand %matmul[0] : (!transform.any_op) -> !transform.any_op
    transform.annotate %a "operand_a" : !transform.any_op
    %b = transform.get_producer_of_operand %matmul[1] : (!transform.any_op) -> !transform.any_op
    transform.annotate %b "operand_b" : !transform.any_op

    // The initial accumulator gets the allocation: a fill, or a copy of C's tile for C = AB + C.
    %start = transform.get_producer_of_operand %matmul[2] : (!transform.any_op) -> !transform.any_op
    %buffer, %ops = transform.structured.bufferize_to_allocation %start {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %start_copy = transform.select "linalg.copy" in %ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %start_copy "operand_c" : !transform.any_op
    %alloc = transform.select "memref.alloc" in %ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %alloc "operand_c" : !transform.any_op

    // The op that writes C, a copy or a consumer: the epilogue steps replace it.
    %written = transform.structured.match ops{["tensor.parallel_insert_slice"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %writers = transform.get_producer_of_operand %written[0] : (!transform.any_op) -> !transform.any_op
    %epilogue = transform.merge_handles deduplicate %writers : !transform.any_op
    transform.annotate %epilogue "operand_c" : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
