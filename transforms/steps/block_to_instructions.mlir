// Divides vectors of XeGPU into blocks of the matrix instruction and of 2D block messages.
//
// The product of one instruction is 8 x 16 elements, over 32 bytes of k. Layouts of instructions follow from the uses
// of each vector, and loads, prefetches, products and stores are unrolled by them.
//
// Source: the passes xegpu-propagate-layout and xegpu-blocking of MLIR.
//
// Before:
//   gpu.func @matmul_kernel(...) kernel {
//     %d = xegpu.dpas %a, %b, %acc : vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>
// After:
//   gpu.module @matmul_kernel [#xevm.target<chip = "bmg">] {
//     gpu.func @matmul_kernel(...) kernel attributes {intel_reqd_sub_group_size = 16 : i32} {
//       %d0 = xegpu.dpas %a0, %b0, %acc0 : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32>
//       ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @block_to_instructions(%module: !transform.any_op {transform.readonly}) {
    %code = transform.structured.match ops{["gpu.module"]} in %module : (!transform.any_op) -> !transform.any_op
    %clean = transform.apply_registered_pass "canonicalize" to %code : (!transform.any_op) -> !transform.any_op
    %laid_out = transform.apply_registered_pass "xegpu-propagate-layout" with options = {"layout-kind" = "inst"}
      to %clean : (!transform.any_op) -> !transform.any_op
    %blocked = transform.apply_registered_pass "xegpu-blocking" to %laid_out : (!transform.any_op) -> !transform.any_op
    %shared = transform.apply_registered_pass "cse" to %blocked : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
