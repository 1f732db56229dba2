// Loads operands with permuted dimensions in place, by TMA descriptors of higher rank, instead of from a copy.
//
// A contraction such as C[m, n] = sum over k and l of A[m, k, l] * B[l, k, n] needs the rows of B in the order of A's
// columns. Without this step, a preceding kernel (`prepare_operands`) writes a workspace in this order: it reads and
// writes B once, in sequence with the matmul. TMA addresses tensors of up to five dimensions with arbitrary strides
// except for the innermost dimension, so that the dimensions of a box may be in another order than in memory: a box of
// 64 rows of the workspace is a box of a few k and of all l of B. This step gives the descriptor the axes of the buffer
// in the order of the copy, delinearizes each index of the loads into indices of these axes, and removes the kernel and
// the workspace.
//
// Left out: a preceding kernel copies the operand to a workspace.
//
// Source: CUTLASS, whose contractions (GETT) read operands by TMA descriptors of as many modes.
//
// Before, with l = 32 and k = 128:
//   %w = memref.alloc() {whole, workspace} : memref<4096x4096xf16>
//   gpu.launch_func @prepare_0::@prepare_0 ... args(%B : memref<32x128x4096xf16>, ...) {permutation = [1, 0, 2]}
//   %d = nvgpu.tma.create.descriptor %w box[64, 64]
//   nvgpu.tma.async.load %d[%n, %k], ... to %tile : memref<64x64xf16>
// After:
//   %v = memref.reinterpret_cast %B to sizes: [128, 32, 4096], strides: [4096, 524288, 1]
//   %d = nvgpu.tma.create.descriptor %v box[2, 32, 64]
//   nvgpu.tma.async.load %d[%n, %k mod 32, %k floordiv 32], ... to %boxes : memref<2x32x64xf16>

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @load_in_place(%module: !transform.any_op {transform.readonly})
      attributes {optimization} {
    "tc.load_in_place"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
