// Distributes the copies to shared memory over the threads where tiles have edges: vectors beyond A and B are zeros.
//
// A thread copies vectors of `a_run` or `b_run` elements, in the order of `map_copies_cyclically`. A vector is the
// widest, of up to 16 bytes, that divides the rows of the matrix: it is aligned in every row, and lies either inside
// the matrix or outside. Each read therefore needs one predicate, on its row and its column, and only for the
// dimensions that have an edge; other reads are unmasked. The mask of a read becomes the number of elements that
// `cp.async` copies (`convert_to_cp_async`), which fills the rest of its 4, 8 or 16 bytes with zeros, or the condition
// of a load (`lower_masked_copies`).
//
// Zeros beyond the reduction do not change a sum. Sums beyond the rows and columns of C are not stored.
//
// Upstream vectorizes copies of dynamic extents with masks of single elements, for which the hardware has no
// instruction; hence `tc.map_masked_copies`.
//
// Source: the zero fill of `cp.async`, as in CUTLASS's predicated tile iterators.
//
// Before:
//   linalg.fill ins(0) outs(%shared_a : memref<128x32xf16, ...>)
//   %inside = memref.subview %shared_a[0, 0] [%rows, %depth]
//   linalg.copy {operand_a} ins(%a_tile : memref<?x?xf16, ...>) outs(%inside : ...)
// After, for each vector of a thread:
//   %is_inside = arith.andi (%row < %rows), (%column < %depth)
//   %mask = vector.create_mask (%is_inside ? 8 : 0) : vector<8xi1>
//   %0 = vector.transfer_read %a_tile[%row, %column], 0, %mask : memref<?x?xf16, ...>, vector<8xf16>
//   vector.transfer_write %0, %shared_a[%row, %column]
//   ... then B, and gpu.barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @map_masked_copies(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "stage_in_shared_memory",
         message = "tiles that do not divide m, n and k must be staged in shared memory (stage_in_shared_memory)"},
        {condition = "a_run * a_bits >= 32 and b_run * a_bits >= 32 or not copies_asynchronously",
         message = "vectors of a_run and b_run elements must have at least 4 bytes, the minimum of cp.async"},
        {condition = "not is_i8 or not copies_asynchronously",
         message = "i8 tiles that do not divide m, n and k must be copied through registers: cp.async is not masked"},
        {condition = "block_m % warp_m == 0", message = "block_m must be a multiple of warp_m"},
        {condition = "block_n % warp_n == 0", message = "block_n must be a multiple of warp_n"},
        {condition = "block_m * block_k % (threads * a_run) == 0",
         message = "block_m * block_k, the tile of A, must be a multiple of threads * a_run, the elements of a copy"},
        {condition = "block_k * block_n % (threads * b_run) == 0",
         message = "block_k * block_n, the tile of B, must be a multiple of threads * b_run, the elements of a copy"}
      ]} {
    "tc.map_masked_copies"(%module) {operand = "operand_a", threads = 128 : i64, width = 8 : i64,
        knobs = {threads = "threads", width = "a_run"}} : (!transform.any_op) -> ()
    "tc.map_masked_copies"(%module) {operand = "operand_b", threads = 128 : i64, width = 8 : i64,
        knobs = {threads = "threads", width = "b_run"}} : (!transform.any_op) -> ()

    // Sets the number of threads of the launch; there is no loop to map. One barrier follows the last copy.
    %launch = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [128, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %module : (!transform.any_op) -> !transform.any_op
    "tc.insert_barrier"(%matmul) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
