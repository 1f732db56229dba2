// Places the buffers between the kernels of a function in one workspace.
//
// The launcher allocates one buffer for all intermediate values. A value lives from the kernel that writes it to the
// last kernel that reads it. Values with disjoint lifetimes share bytes, so that an MLP of many layers takes the memory
// of two. Offsets are multiples of 256 bytes, which TMA and 128-bit accesses need. Upstream's own pass only makes
// allocations of constant size static; it does not share memory between buffers.
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

module attributes {transform.with_named_sequence} {
  transform.named_sequence @plan_workspace(%module: !transform.any_op {transform.readonly}) {
    "tc.plan_workspace"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
