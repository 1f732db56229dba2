// Converts 16 x 16 transfers and contractions to WMMA operations of the gpu dialect.
//
// A fragment (`!gpu.mma_matrix`) is distributed over the 32 lanes of a warp, in a layout that the hardware does not
// document. A load distributes a 16 x 16 tile over the registers of the lanes, and a product is one warp-synchronous
// instruction.
//
// Source: CC'22, sections 3.1 and 3.3.
//
// Before:
//   %a = vector.transfer_read %shared_a[...] : memref<128x40xf16, ...>, vector<16x16xf16>
//   %d = vector.contract ... %a, %b, %c
// After:
//   %a = gpu.subgroup_mma_load_matrix %shared_a[...] {leadDimension = 40} -> !gpu.mma_matrix<16x16xf16, "AOp">
//   %d = gpu.subgroup_mma_compute %a, %b, %c -> !gpu.mma_matrix<16x16xf32, "COp">

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @convert_to_wmma(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "a_type == b_type and a_type in ['f16', 'bf16', 'i8']",
         message = "A and B must have the same element type: f16, bf16 or i8"},
        {condition = "a_type != 'i8' or extend_integers",
         message = "operands of i8 require the step extend_integers"},
        {condition = "a_type != 'bf16' or load_bf16_as_f16",
         message = "operands of bf16 require the step load_bf16_as_f16"},
        {condition = "acc_type in (['f16', 'f32'] if a_type == 'f16' else ['f32'] if a_type == 'bf16' else ['i32'])",
         message = "the accumulator type must be f16 or f32 for f16, f32 for bf16, and i32 for i8"},
        {condition = "accumulator_registers < 255",
         message = "accumulators must use fewer than 255 registers per thread (accumulator_registers)"},
        {condition = "accumulator_registers * threads < 65536",
         message = "the accumulators of all threads must use fewer than 65536 registers"}
      ]} {
    %kernel = transform.structured.match ops{["gpu.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Converts the k loop as a whole: accumulators carried by iter_args become `!gpu.mma_matrix` values.
    %wmma = transform.apply_registered_pass "convert-vector-to-gpu" to %kernel
      : (!transform.any_op) -> !transform.any_op
    // The conversion drops the mark of products whose elements are of bf16 (`load_bf16_as_f16`).
    %all = transform.structured.match ops{["gpu.subgroup_mma_compute"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.tune.alternatives<"of_bf16"> selected_region = 0
        attributes {knobs = {selected_region_attr = "a_type == 'bf16'"}} {
    }, {
      transform.annotate %all "of_bf16" : !transform.any_op
    }
    // Upstream loads the fragments of a column-major operand as such. Which registers hold which elements depends on
    // the layout, and a product must name that of its operands.
    %products = transform.structured.match ops{["gpu.subgroup_mma_compute"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.tune.alternatives<"a_layout"> selected_region = 0
        attributes {knobs = {selected_region_attr = "a_layout == 'column'"}} {
    }, {
      transform.annotate %products "a_transpose" : !transform.any_op
    }
    transform.tune.alternatives<"b_layout"> selected_region = 0
        attributes {knobs = {selected_region_attr = "b_layout == 'column'"}} {
    }, {
      transform.annotate %products "b_transpose" : !transform.any_op
    }
    transform.include @canonicalize failures(propagate) (%wmma) : (!transform.any_op) -> ()
    transform.yield
  }
}
