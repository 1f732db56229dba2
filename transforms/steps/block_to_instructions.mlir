// Divides XeGPU vectors into blocks of the size of one matrix instruction or one 2D block message.
//
// One instruction computes 8 x 16 elements of C over 32 bytes of k. Upstream propagates the layouts of the instructions
// from the uses of each vector, and unrolls loads, prefetches, products and stores by them.
//
// Source: the passes xegpu-propagate-layout and xegpu-blocking of MLIR.
//
// Before:
//   %d = xegpu.dpas %a, %b, %acc : vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32>
// After:
//   %d0 = xegpu.dpas %a0, %b0, %acc0 : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32>
//   ...

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
