// Lowers accesses to shared local memory to loads and stores of elements, and the memory to globals of the kernel's
// module.
//
// A lane holds a column of each block, whose elements are not adjacent in a row-major matrix. The accesses of the lanes
// of a subgroup are adjacent, and the target's compiler combines them. The step leaves a kernel without shared local
// memory alone.
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
