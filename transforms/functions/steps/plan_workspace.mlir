// Places the buffers between the kernels of a function in one workspace.
//
// The launcher allocates one buffer for all intermediate values. A value lives from the kernel that writes it to the
// last kernel that reads it. Values with disjoint lifetimes share bytes, so that an MLP of many layers takes the memory
// of two. Offsets are multiples of 256 bytes, which TMA and 128-bit accesses need. Upstream's own pass only makes
// allocations of constant size static; it does not share memory between buffers.
//
// If a function that `decompose_ops` made only assembles a tensor from parts, the kernels write the parts to their
// positions in the workspace or in a result, and the step removes the call of this function. A buffer that is returned
// in another shape is the result itself, without a copy.
//
// Source: greedy by size for offset calculation (Pisarchyk and Lee, "Efficient memory management for deep neural net
// inference", 2020).
//
// Before:
//   %h = memref.alloc() : memref<4x256xf16>
// After:
//   %workspace = memref.alloc() {workspace} : memref<4096xi8>
//   %c2048 = arith.constant 2048 : index
//   %h = memref.view %workspace[%c2048][] : memref<4096xi8> to memref<4x256xf16>

// Before:
//   call @heads_matmul_1(%x, %w, %h1) : (...)
//   call @heads_elementwise_0(%h0, %h1, %result) : (...)
// After:
//   %bytes = builtin.unrealized_conversion_cast %result : memref<2x32x64xf16> to memref<8192xi8>
//   %h1 = memref.view %bytes[%c4096][] : memref<8192xi8> to memref<32x64xf16>
//   call @heads_matmul_1(%x, %w, %h1) : (...)

module attributes {transform.with_named_sequence} {
  transform.named_sequence @plan_workspace(%module: !transform.any_op {transform.readonly}) {
    "tc.plan_workspace"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
