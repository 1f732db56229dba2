// Lets lanes access shared local memory by element, and makes that memory globals of the kernel's module.
//
// A lane holds a column of each block: rows of a row-major matrix, which are not adjacent in memory. The target's
// compiler combines the accesses of a subgroup's lanes, which are adjacent. A kernel without shared local memory stays
// as it is.
//
// Source: MLIR's pass convert-xegpu-to-xevm loads the rows of a lane as one vector, which is right for column-major
// matrices only; hence `tc.lower_lane_matrices`.
//
// Before:
//   %slm = memref.alloc() : memref<256x128xf16, 3>
//   %desc = xegpu.create_mem_desc %slm : memref<256x128xf16, 3> -> !xegpu.mem_desc<256x128xf16>
//   %a = xegpu.load_matrix %desc[%i, %lane] : !xegpu.mem_desc<256x128xf16>, index, index -> vector<8x1xf16>
// After:
//   memref.global "private" @matmul_kernel_shared_0 : memref<256x128xf16, 3> = uninitialized
//   %slm = memref.get_global @matmul_kernel_shared_0 : memref<256x128xf16, 3>
//   %a0 = memref.load %slm[%i, %lane]
//   %a1 = memref.load %slm[%i + 1, %lane]
//   ...
//   %a = vector.from_elements %a0, %a1, ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @access_shared_memory(%module: !transform.any_op {transform.readonly}) {
    "tc.lower_lane_matrices"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
