// Fuses the elementwise ops between matmuls with each other, and with the reductions that read them.
//
// Each remaining op becomes a kernel that reads its operands from memory and writes its result there; fused ops
// exchange values in registers. The step generalizes named ops first, so that transposes and broadcasts fuse as well.
// Each op that reads values of positions alone, such as a causal mask, or extensions of narrow elements computes them
// itself. An op that extracts elements of what an elementwise op makes, such as one that joins halves, computes them
// itself. Upstream's pass also drops unused results, such as the position of the maximum that PyTorch's softmax
// computes. The step leaves functions of matmuls alone.
//
// Before:
//   %d = linalg.generic ... ins(%x, %max : ...) { arith.subf }
//   %e = linalg.generic ... ins(%d : ...) { math.exp }
// After:
//   %e = linalg.generic ... ins(%x, %max : ...) { arith.subf, math.exp }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @generalize_elementwise(!transform.any_op {transform.readonly})

  transform.named_sequence @fuse_elementwise(%module: !transform.any_op {transform.readonly}) {
    %caller = transform.structured.match ops{["func.func"]} attributes{has_stages} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.include @generalize_elementwise failures(propagate) (%caller) : (!transform.any_op) -> ()
    // Contractions that `outline_matmuls` has left: batches of products of vectors, products that the result repeats,
    // and those of types that matrix units do not multiply.
    %vectors = transform.structured.match ops{[
        "linalg.batch_matmul", "linalg.batch_matvec", "linalg.batch_mmt4d", "linalg.batch_reduce_matmul",
        "linalg.batch_vecmat", "linalg.contract", "linalg.dot", "linalg.matmul", "linalg.matvec", "linalg.mmt4d",
        "linalg.quantized_batch_matmul", "linalg.quantized_matmul", "linalg.vecmat"
      ]} in %caller : (!transform.any_op) -> !transform.any_op
    %generic = transform.structured.generalize %vectors : (!transform.any_op) -> !transform.any_op
    // Means of channels, and differences from them, have one reader each.
    "tc.repeat_statistics"(%caller) : (!transform.any_op) -> ()
    // Pairs of positions, such as those of a causal mask, have one reader each.
    "tc.repeat_positions"(%caller) : (!transform.any_op) -> ()
    "tc.repeat_extensions"(%caller) : (!transform.any_op) -> ()
    %fused = transform.apply_registered_pass "linalg-fuse-elementwise-ops" to %caller
      : (!transform.any_op) -> !transform.any_op
    // The rotary embedding of heads, for example, is two halves that an op joins, and the windows of a padded
    // convolution are read where the padding would be.
    "tc.inline_extracted"(%fused) {at_most = 2 : i64} : (!transform.any_op) -> ()
    // A reshape of an empty tensor is an empty tensor: a result that begins from it is a whole buffer. Patterns and CSE
    // alternate until nothing changes: an op that folds to its operand later would become a kernel without an op.
    transform.apply_patterns to %fused {
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } {apply_cse} : !transform.any_op
    transform.yield
  }
}
