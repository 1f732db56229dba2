// Lowers the kernel from XeGPU to XeVM, whose operations map to the built-ins of Intel's OpenCL C.
//
// A descriptor becomes an address and the width, height and pitch of its matrix in bytes, which each 2D block operation
// takes. The vectors of lanes become integer vectors, as the built-ins take them: 16-bit integers for A, 32-bit
// integers with packed rows for B.
//
// SPIR-V has no bf16 arithmetic: the step computes it in f32, and rounds each result.
//
// Source: the passes xegpu-vector-linearize, convert-math-to-xevm, arith-emulate-unsupported-floats, arith-expand and
// convert-xegpu-to-xevm of MLIR.
//
// Before:
//   %b = xegpu.load_nd %desc[%k, %j] {packed} : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
//   %d = xegpu.dpas %a, %b, %acc : vector<8xf16>, vector<16xf16>, vector<8xf32>
// After:
//   %w = xevm.blockload2d %address, %width, %height, %pitch, %x, %y {elem_size_in_bits = 16, pack_register = true, ...}
//   %b = vector.bitcast %w : vector<8xi32> to vector<16xf16>
//   %d = xevm.mma %a, %b, %acc {shape = <m = 8, n = 16, k = 16>, types = <d = f32, a = f16, b = f16, c = f32>}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower_to_xevm(%module: !transform.any_op {transform.readonly}) {
    %code = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    %invariant = transform.apply_registered_pass "loop-invariant-code-motion" to %code
      : (!transform.any_op) -> !transform.any_op
    %linear = transform.apply_registered_pass "xegpu-vector-linearize" to %invariant
      : (!transform.any_op) -> !transform.any_op
    %math = transform.apply_registered_pass "convert-math-to-xevm" to %linear : (!transform.any_op) -> !transform.any_op
    %wide = transform.apply_registered_pass "arith-emulate-unsupported-floats"
      with options = {"source-types" = ["bf16"], "target-type" = "f32"} to %math
      : (!transform.any_op) -> !transform.any_op
    %expanded = transform.apply_registered_pass "arith-expand" with options = {"include-bf16" = "true"} to %wide
      : (!transform.any_op) -> !transform.any_op
    %xevm = transform.apply_registered_pass "convert-xegpu-to-xevm" to %expanded
      : (!transform.any_op) -> !transform.any_op
    %shared = transform.apply_registered_pass "cse" to %xevm : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
