// Bufferizes a function and its callees: results become arguments that the callee writes.
//
// The arguments of kernels are row-major buffers: types at function boundaries have the identity layout, except for
// parts of arguments, which have an offset. The caller allocates the buffers that one call writes and other calls read.
//
// Before:
//   %h = call @mlp_matmul_0(%x, %w) : (tensor<4x128xf16>, tensor<256x128xf16>) -> tensor<4x256xf16>
// After:
//   %h = memref.alloc() : memref<4x256xf16>
//   call @mlp_matmul_0(%x, %w, %h) : (memref<4x128xf16>, memref<256x128xf16>, memref<4x256xf16>) -> ()

module attributes {transform.with_named_sequence} {
  transform.named_sequence @bufferize_function(%module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %empty = transform.apply_registered_pass "eliminate-empty-tensors" to %module
      : (!transform.any_op) -> !transform.any_op
    %buffers = transform.apply_registered_pass "one-shot-bufferize"
      with options = {"bufferize-function-boundaries" = true,
                      "function-boundary-type-conversion" = "identity-layout-map"} to %empty
      : (!transform.any_op) -> !transform.any_op
    // Callees first: the buffers of their results are then allocations of the caller, which become its own arguments.
    %callees = transform.apply_registered_pass "buffer-results-to-out-params"
      with options = {"hoist-static-allocs" = true} to %buffers : (!transform.any_op) -> !transform.any_op
    %written = transform.apply_registered_pass "buffer-results-to-out-params"
      with options = {"hoist-static-allocs" = true, "modify-public-functions" = true} to %callees
      : (!transform.any_op) -> !transform.any_op
    %clean = transform.apply_registered_pass "canonicalize" to %written : (!transform.any_op) -> !transform.any_op
    %shared = transform.apply_registered_pass "cse" to %clean : (!transform.any_op) -> !transform.any_op
    transform.yield %shared : !transform.any_op
  }
}
