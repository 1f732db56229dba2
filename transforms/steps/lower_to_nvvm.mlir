// Lowers the kernel to the NVVM dialect, whose operations map one to one to LLVM IR and NVIDIA's intrinsics.
//
// Structured loops become branches, indices become 64-bit integers, memrefs become bare pointers, and each WMMA
// operation becomes its intrinsic. Thread and block indices are never negative: signed divisions of indices become
// unsigned ones, and shifts where the divisor is a power of two.
//
// Before:
//   %d = gpu.subgroup_mma_compute %a, %b, %c : ... -> !gpu.mma_matrix<16x16xf32, "COp">
// After:
//   %d = nvvm.wmma.mma %a0, ..., %b0, ..., %c0, ... {eltypeA = f16, eltypeB = f32, m = 16, n = 16, k = 16, ...}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_to_nvvm(%module: !transform.any_op {transform.consumed},
      %target: !transform.any_param {transform.readonly}) -> !transform.any_op {
    %targeted = transform.apply_registered_pass "nvvm-attach-target"
      with options = {"chip" = %target, "O" = 3 : i64} to %module
      : (!transform.any_op, !transform.any_param) -> !transform.any_op
    %kernels = transform.structured.match ops{["gpu.module"]} in %targeted : (!transform.any_op) -> !transform.any_op
    // `memref.subview` chains become base, offset and strides, and `affine` ops become arithmetic.
    %0 = transform.apply_registered_pass "expand-strided-metadata" to %kernels
      : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "lower-affine" to %0 : (!transform.any_op) -> !transform.any_op

    // Ranges of thread and block indices are known here: comparisons with zero fold, and signed divisions and
    // remainders become unsigned.
    %2 = transform.apply_registered_pass "int-range-optimizations" to %1 : (!transform.any_op) -> !transform.any_op
    %3 = transform.apply_registered_pass "canonicalize" to %2 : (!transform.any_op) -> !transform.any_op
    %4 = transform.apply_registered_pass "arith-unsigned-when-equivalent" to %3
      : (!transform.any_op) -> !transform.any_op
    %5 = transform.apply_registered_pass "cse" to %4 : (!transform.any_op) -> !transform.any_op

    // Fragments of f64 are one element; canonicalization inserts shape casts of them, which the conversion does not
    // support.
    transform.foreach %5 : !transform.any_op {
    ^bb0(%each: !transform.any_op):
      %casts = transform.structured.match ops{["vector.shape_cast"]} in %each : (!transform.any_op) -> !transform.any_op
      %casting = transform.get_parent_op %casts {deduplicate, op_name = "gpu.func"}
        : (!transform.any_op) -> !transform.any_op
      transform.apply_patterns to %casting {
        transform.apply_patterns.vector.lower_shape_cast
      } : !transform.any_op
    }
    // convert-scf-to-cf comes first: the conversions below change the types of values that loops carry, such as
    // fragments.
    %6 = transform.apply_registered_pass "convert-scf-to-cf" to %5 : (!transform.any_op) -> !transform.any_op
    %7 = transform.apply_registered_pass "convert-nvgpu-to-nvvm" to %6 : (!transform.any_op) -> !transform.any_op
    // i32 sums wrap in the payload; upstream's conversion makes them saturate.
    %wrapped = transform.param.constant #nvvm.mma_int_overflow<wrapped> -> !transform.any_param
    transform.foreach %7 : !transform.any_op {
    ^bb0(%each: !transform.any_op):
      %products = transform.structured.match ops{["nvvm.mma.sync"]}
        attributes{intOverflowBehavior = #nvvm.mma_int_overflow<satfinite>} in %each
        : (!transform.any_op) -> !transform.any_op
      transform.annotate %products "intOverflowBehavior" = %wrapped : !transform.any_op, !transform.any_param
    }
    // Bare pointers: the kernel takes one pointer per buffer, which the launcher passes, instead of a memref
    // descriptor.
    %8 = transform.apply_registered_pass "convert-gpu-to-nvvm"
      with options = {"use-bare-ptr-memref-call-conv" = true, "index-bitwidth" = 64 : i64} to %7
      : (!transform.any_op) -> !transform.any_op
    %9 = transform.apply_registered_pass "canonicalize" to %8 : (!transform.any_op) -> !transform.any_op
    %10 = transform.apply_registered_pass "cse" to %9 : (!transform.any_op) -> !transform.any_op
    // The casts that remain between converted types cancel each other.
    %11 = transform.apply_registered_pass "reconcile-unrealized-casts" to %10
      : (!transform.any_op) -> !transform.any_op
    transform.yield %targeted : !transform.any_op
  }
}
