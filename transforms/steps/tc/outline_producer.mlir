// Moves the elementwise ops that compute the register operand of `wgmma` to a function before the matmul, until
// `prepare_in_registers` moves them into the matmul's kernel.
//
// `prepare_operands` turns each producer into a kernel that writes the operand to a workspace. The operand that `wgmma`
// takes from registers needs neither kernel nor workspace: this is A, or B with `swap_operands`. Its ops are kept in a
// function on buffers. Steps between this one and `prepare_in_registers` see a matmul that reads a buffer, and a call
// that writes it.
//
// Before:
//   %weights = linalg.generic {...} ins(%q, %scales : tensor<4096x4096xi8>, tensor<4096xf16>) outs(%0 : ...) { ... }
//   bufferization.materialize_in_destination %weights in restrict writable %w
//   %b = bufferization.to_tensor %w restrict : ...
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)
// After:
//   call @producer(%Q, %Scales, %w) {producer}
//   %b = bufferization.to_tensor %w restrict : ...
//   %d = linalg.matmul ins(%a, %b : ...) outs(%c : ...)
//
//   func.func private @producer(%Q: memref<4096x4096xi8>, %Scales: memref<4096xf16>, %w: memref<4096x4096xf16>) {
//     linalg.generic {...} ins(%Q, %Scales : ...) outs(%w : ...) { ... }
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @generalize_elementwise(!transform.any_op {transform.readonly})
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @outline_producer(%module: !transform.any_op {transform.readonly})
      attributes {facts = {
        register_source_bits = "b_source_bits if swap_operands else a_source_bits"
      }, requires = [
        {condition = "not batched", message = "a batch requires producers = kernels"},
        {condition = "a_type in ['f16', 'bf16']",
         message = "the register operand must be f16 or bf16; other types require producers = kernels"},
        {condition = "k % block_k == 0", message = "k must be a multiple of block_k for register operands"},
        {condition = "tile_scheduler == 'data_parallel'",
         message = "register operands require tile_scheduler = data_parallel"},
        {condition = "products == 1 or not swap_operands",
         message = "producers = registers requires swap_operands = false for a pair of products"}
      ]} {
    transform.include @generalize_elementwise failures(propagate) (%module) : (!transform.any_op) -> ()
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %fused = transform.apply_registered_pass "linalg-fuse-elementwise-ops" to %func
      : (!transform.any_op) -> !transform.any_op
    transform.apply_cse to %fused : !transform.any_op
    "tc.outline_producer"(%module) {operand = 1 : i64, knobs = {operand = "1 if swap_operands else 0"}}
      : (!transform.any_op) -> ()

    %outlined = transform.structured.match ops{["func.func"]} attributes {producer} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.structured.eliminate_empty_tensors %outlined : !transform.any_op
    %buffers = transform.bufferization.one_shot_bufferize %outlined : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%buffers) : (!transform.any_op) -> ()
    %host = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%host) : (!transform.any_op) -> ()
    transform.yield
  }
}
