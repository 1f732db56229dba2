// Allocates every shared tile as a static array in shared memory, at most 48 KB a block.
//
// Upstream's passes turn the allocation into a stack allocation, and the stack allocation into a global in the
// workgroup address space. `pack_shared_memory` replaces this step where the tiles need dynamic shared memory.
//
// Before:
//   %shared_a = memref.alloc() : memref<2x128x40xf16, #gpu.address_space<workgroup>>
// After:
//   memref.global "private" @alloca : memref<2x128x40xf16, #gpu.address_space<workgroup>> {alignment = 128}
//   %shared_a = memref.get_global @alloca

module attributes {transform.with_named_sequence} {
  transform.named_sequence @allocate_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "shared_bytes <= 49152",
         message = "a block must use at most 49152 bytes of static shared memory (shared_bytes)"}
      ]} {
    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Rank 3: multi-staged tiles are stages x rows x columns. The limit is what a block may declare statically.
    %on_stack = transform.apply_registered_pass "promote-buffers-to-stack"
      with options = {"max-alloc-size-in-bytes" = 49152 : i64, "max-rank-of-allocated-memref" = 3 : i64} to %func
      : (!transform.any_op) -> !transform.any_op
    %tiles = transform.structured.match ops{["memref.alloca"]} in %on_stack
      : (!transform.any_op) -> !transform.op<"memref.alloca">
    %references, %globals = transform.memref.alloca_to_global %tiles
      : (!transform.op<"memref.alloca">) -> (!transform.any_op, !transform.any_op)
    // 128 bytes are one access to every bank: each tile starts in bank 0.
    %bytes = transform.param.constant 128 : i64 -> !transform.param<i64>
    transform.annotate %globals "alignment" = %bytes : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
