// Converts fragment transfers and contractions to `ldmatrix` and `mma.sync` of the nvgpu dialect.
//
// A fragment becomes registers of 32 lanes in the layout that the PTX ISA documents. `ldmatrix` loads 8 x 8 matrices
// from shared memory with one row address per lane, so that rows may be anywhere, also in a swizzled tile, which WMMA
// cannot read. Each lane loads and stores its elements of C with vector accesses.
//
// `ldmatrix` transposes 16-bit elements only. Other fragments that need a transposition (row-major B of i8 or f32) are
// loaded element by element. Upstream's conversion does not support bf16 and fp8, whose fragments have the layouts of
// f16 and i8: `tc.reinterpret_elements` converts them to these types and back. Upstream loads the matrices of a
// column-major A in another order than the product expects, which `tc.order_transposed_tiles` corrects. With
// `allow_tf32`, products of f32 are marked as tf32.
//
// A lane holds pairs of adjacent elements of the product. An elementwise op on the product is computed on these pairs
// before they are stored to C, and the tile that the op reads is never written. Upstream's conversion supports no
// elementwise ops on fragments, hence `tc.compute_on_fragments`. A reduction of rows or columns folds the pairs of a
// lane, then the values of the lanes with elements of the same row or column, and stores one partial result of each to
// global memory. The last warp to arrive folds the partial results in a fixed order and stores the result.
//
// Source: CC'22, section 2.2, on the limitations of WMMA.
//
// Before:
//   %a = vector.transfer_read %shared_a[...] : memref<3x128x32xf16, ...>, vector<16x16xf16>
//   %b = vector.transfer_read %shared_b[...] : memref<3x32x128xf16, ...>, vector<16x8xf16>
//   %d = vector.contract ... %a, %b, %c
// After:
//   %a = nvgpu.ldmatrix %shared_a[...] {numTiles = 4, transpose = false} -> vector<4x2xf16>
//   %b = nvgpu.ldmatrix %shared_b[...] {numTiles = 2, transpose = true} -> vector<2x2xf16>
//   %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (...) -> vector<2x2xf32>
//
// Before, with an elementwise op:
//   vector.transfer_write %d, %tile[%row, %column] : vector<16x8xf32>, memref<128x128xf32, ...>
//   func.call @consumer(%tile, %warp_row, %warp_column, %bias, %c_tile)   // adds the bias and rounds
// After, for each pair of a lane:
//   %pair = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
//   %b = vector.load %bias[%column] : memref<128xf32, ...>, vector<2xf32>
//   %sum = arith.addf %pair, %b : vector<2xf32>
//   %rounded = arith.truncf %sum : vector<2xf32> to vector<2xf16>
//   vector.store %rounded, %c_tile[%row, %column]
// and with sums of rows:
//   %sums = arith.addf %sum_of_pairs, %of_the_next_lane   // gpu.shuffle xor 1, then 2
//   memref.store %sums, %partial_results[%warp_column, %row]
//   if (memref.atomic_rmw addi %one, %counters[%warp_row]) == 7 { fold %partial_results[0 to 8, %row]; store to %R }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @convert_to_mma_sync(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "a_type in ['f16', 'bf16', 'f32', 'f64', 'f8E4M3FN', 'f8E5M2', 'i8']",
         message = "the element type of A must be f16, bf16, f32, f64, f8E4M3FN, f8E5M2 or i8"},
        {condition = "a_type == b_type",
         message = "A and B must have the same element type (wgmma also multiplies f8E4M3FN by f8E5M2)"},
        {condition = "a_type in ['f64', 'i8'] or acc_type == 'f32' or [a_type, acc_type] == ['f16', 'f16']",
         message = "the accumulator type must be f32, or f16 for operands of f16"},
        {condition = "a_type not in ['f64', 'i8'] or acc_type == ('f64' if a_type == 'f64' else 'i32')",
         message = "the accumulator type must be f64 for operands of f64, and i32 for i8"},
        {condition = "a_bits != 8 or a_type == 'i8' or target in ['sm_89', 'sm_90', 'sm_90a']",
         message = "operands of fp8 require target sm_89 or later"},
        {condition = "hoist_accumulators or not has_consumer",
         message = "elementwise ops require accumulators in registers: hoist_accumulators must run"},
        {condition = "accumulator_registers < 255",
         message = "accumulators must use fewer than 255 registers per thread (accumulator_registers)"},
        {condition = "accumulator_registers * threads < 65536",
         message = "the accumulators of all threads must use fewer than 65536 registers"}
      ]} {
    // bf16 is handled as f16 and fp8 as i8 (half_type, stand_in); for other types this changes nothing. An elementwise
    // op is in a separate function, which is not changed.
    %contractions = transform.structured.match ops{["vector.contract"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %vectors = transform.get_parent_op %contractions {op_name = "func.func", deduplicate}
      : (!transform.any_op) -> !transform.any_op
    "tc.reinterpret_elements"(%vectors) {old = f16, new = f16, knobs = {old = "half_type", new = "stand_in"}}
      : (!transform.any_op) -> ()
    %converted = transform.apply_registered_pass "convert-vector-to-gpu" with options = {"use-nvgpu" = true}
      to %vectors : (!transform.any_op) -> !transform.any_op
    "tc.order_transposed_tiles"(%converted) : (!transform.any_op) -> ()
    "tc.reinterpret_elements"(%converted) {old = f16, new = f16, knobs = {old = "stand_in", new = "half_type"}}
      : (!transform.any_op) -> ()

    // Each lane accesses C in pairs of adjacent elements, which are aligned to the size of a pair, not to 16 bytes as
    // `lower_transfers` assumes of other accesses. It loads an f64 A by elements. Preceding kernels, which are
    // `gpu.func` already, keep the alignments of their vectors.
    %functions = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %bytes = transform.param.constant 8 : i64 {knobs = {value = "2 * acc_bits / 8 if acc_bits < 64 else 8"}}
      -> !transform.param<i64>
    transform.foreach %functions : !transform.any_op {
    ^bb0(%function: !transform.any_op):
      %pairs = transform.structured.match ops{["vector.load", "vector.store"]} in %function
        : (!transform.any_op) -> !transform.any_op
      transform.annotate %pairs "alignment" = %bytes : !transform.any_op, !transform.param<i64>
    }

    "tc.compute_on_fragments"(%module) : (!transform.any_op) -> ()

    // tf32 has 19 of the 32 bits of f32. For products without this mark, `multiply_as_3xtf32` uses the other bits too.
    transform.tune.alternatives<"tf32"> selected_region = 0
        attributes {knobs = {selected_region_attr = "a_type == 'f32' and allow_tf32"}} {
    }, {
      %products = transform.structured.match ops{["nvgpu.mma.sync"]} in %module
        : (!transform.any_op) -> !transform.any_op
      transform.annotate %products "tf32Enabled" : !transform.any_op
    }

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
