// Multiplies bf16 by WMMA instructions of bf16.
//
// Fragments of bf16 are in four registers of a lane, those of f16 in eight. Neither upstream's gpu dialect nor its nvvm
// dialect has them; LLVM has intrinsics. The step replaces products that are marked `of_bf16`, and the loads of their
// operands, by calls to these intrinsics. It runs after the steps that order loads and products, and does not change
// other products.
//
// Source: PTX ISA, "Warp-level Matrix Instructions", wmma.mma with .bf16.
//
// Before:
//   %a = gpu.subgroup_mma_load_matrix %halves[...] {leadDimension = 40 : index} -> !gpu.mma_matrix<16x16xf16, "AOp">
//   %d = gpu.subgroup_mma_compute %a, %b, %c {of_bf16} : ... -> !gpu.mma_matrix<16x16xf32, "COp">
// After:
//   %pointer = llvm.getelementptr %shared_a[...] : !llvm.ptr<3>, bf16
//   %a = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.load.a.row.stride.bf16.p3"(%pointer, 40)
//   %sums = builtin.unrealized_conversion_cast %c : !gpu.mma_matrix<16x16xf32, "COp"> to !llvm.struct<(f32, ...)>
//   %0 = llvm.call_intrinsic "llvm.nvvm.wmma.m16n16k16.mma.row.row.bf16"(%a[0], ..., %b[0], ..., %sums[0], ...)
//   %d = builtin.unrealized_conversion_cast %0 : !llvm.struct<(f32, ...)> to !gpu.mma_matrix<16x16xf32, "COp">

module attributes {transform.with_named_sequence} {
  transform.named_sequence @multiply_as_bf16(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "a_type != 'bf16' or target != 'sm_75'",
         message = "operands of bf16 require target sm_80 or later"}
      ]} {
    "tc.multiply_as_bf16"(%module) : (!transform.any_op) -> ()
    transform.apply_cse to %module : !transform.any_op
    transform.yield
  }
}
