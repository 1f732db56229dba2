// Packs the shared tiles into one array: static up to 48 KB, dynamic above.
//
// A block may declare 48 KB statically on any GPU; the rest of what it has (up to 227 KB) is dynamic and comes with the
// launch, which therefore carries the number of bytes. The array is then a global without a size that is defined
// elsewhere.
//
// Upstream's `gpu.dynamic_shared_memory` lowers to an internal global that LLVM places statically: it overlaps other
// shared data and gives wrong numbers. And nothing upstream lays several tiles out in one array. Hence
// `tc.pack_shared_memory`.
//
// Before:
//   %shared_a = memref.alloc() : memref<2x256x72xf16, #gpu.address_space<workgroup>>
// After:
//   memref.global @shared_memory : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024}
//   gpu.launch ... dynamic_shared_memory_size %bytes {
//     %shared_a = memref.view %shared_memory[%offset][] : memref<...xi8, ...> to memref<2x256x72xf16, ...>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @pack_shared_memory(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "shared_bytes <= shared_memory_limit",
         message = "the shared memory of a block (shared_bytes) must fit in that of the target (shared_memory_limit)"}
      ]} {
    "tc.pack_shared_memory"(%module) {static_limit = 49152 : i64} : (!transform.any_op) -> ()
    transform.yield
  }
}
