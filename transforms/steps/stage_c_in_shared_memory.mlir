// Gives the sums of a block a whole tile in shared memory, and pads A and B to whole tiles.
//
// The sums then have one place of a static shape from the first product to the last, whatever part of the tile lies
// inside of C. Without an epilogue of its own, C is written by a copy from there; a rounding to C's type, where there
// is one, reads the sums and writes C. Either happens once a block, behind the k loop. For later steps that keep the
// sums in registers this tile says what they start from and where they end up, and it may disappear altogether.
//
// The copies are made of upstream's padding (`nofold`: also where there is nothing to pad). That of C becomes an
// allocation here; those of A and B, as long as the whole reduction, wait for `tile_k` to split them and for
// `stage_operands_in_shared_memory` to make copies of them. Zeros that are padded with zeros are a larger fill: C = AB
// reads nothing of C.
//
// The marks `operand_c` tell later steps which tile holds the sums, and which op reads or writes C.
//
// Source: padding as in `stage_in_shared_memory`; sums of a whole tile are what `wgmma` instructions need.
//
// Before, with m = n = k = 1000 and tiles of 128x256x64:
//   %c_tile = tensor.extract_slice %c[%row, %column] [%rows, %columns]
//   %zeros = linalg.fill ins(0) outs(%c_tile : tensor<?x?xf32>)
//   %product = linalg.matmul ins(%a_rows, %b_columns : tensor<?x1000xf16>, tensor<1000x?xf16>) outs(%zeros : ...)
// After:
//   %a_padded = tensor.pad %a_rows nofold high[128 - %rows, 24] : tensor<?x1000xf16> to tensor<128x1024xf16>
//   %b_padded = tensor.pad %b_columns nofold high[24, 256 - %columns] : tensor<1000x?xf16> to tensor<1024x256xf16>
//   %sums = memref.alloc() {operand_c} : memref<128x256xf32, #gpu.address_space<workgroup>>
//   linalg.fill ins(0) outs(%sums)                            // C = AB + C: also linalg.copy {operand_c} of %c_tile
//   %start = bufferization.to_tensor %sums
//   %whole = linalg.matmul ins(%a_padded, %b_padded) outs(%start : tensor<128x256xf32>)
//   %inside = tensor.extract_slice %whole[0, 0] [%rows, %columns]
//   linalg.copy {operand_c} ins(%inside : ...) outs(%c_tile : ...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @stage_c_in_shared_memory(%module: !transform.any_op {transform.readonly},
      %block_m: !transform.param<i64> {transform.readonly}, %block_n: !transform.param<i64> {transform.readonly},
      %block_k: !transform.param<i64> {transform.readonly}) {
    // Either a rounding reads the sums, or C is written from them, which takes a copy. One of the two handles is empty.
    %store = transform.structured.match ops{["tensor.parallel_insert_slice"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %last = transform.get_producer_of_operand %store[0] : (!transform.any_op) -> !transform.any_op
    %rounding = transform.select "linalg.generic" in %last : (!transform.any_op) -> !transform.any_op
    %rounded = transform.get_producer_of_operand %rounding[0] : (!transform.any_op) -> !transform.any_op
    %rounded_sums, %rounded_pads, %no_copy = transform.structured.pad %rounded
      pad_to_multiple_of [%block_m, %block_n, %block_k] {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 1], copy_back_op = "none"
      } : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %plain = transform.select "linalg.matmul" in %last : (!transform.any_op) -> !transform.any_op
    %sums, %pads, %copy = transform.structured.pad %plain pad_to_multiple_of [%block_m, %block_n, %block_k] {
        padding_dimensions = [0, 1, 2], nofold_flags = [1, 1, 1], copy_back_op = "linalg.copy"
      } : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)

    // Zeros with zeros around them become the fill of a whole tile.
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %tensors {
      transform.apply_patterns.canonicalization
    } : !transform.any_op

    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    %start = transform.get_producer_of_operand %matmul[2] : (!transform.any_op) -> !transform.any_op
    %buffer, %ops = transform.structured.bufferize_to_allocation %start {
        memory_space = #gpu.address_space<workgroup>, memcpy_op = "linalg.copy", alloc_op = "memref.alloc"
      } : !transform.any_op
    %start_copy = transform.select "linalg.copy" in %ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %start_copy "operand_c" : !transform.any_op
    %alloc = transform.select "memref.alloc" in %ops : (!transform.any_op) -> !transform.any_op
    transform.annotate %alloc "operand_c" : !transform.any_op

    %written = transform.structured.match ops{["tensor.parallel_insert_slice"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %epilogue = transform.get_producer_of_operand %written[0] : (!transform.any_op) -> !transform.any_op
    transform.annotate %epilogue "operand_c" : !transform.any_op

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.yield
  }
}
