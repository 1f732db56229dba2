// Packs the shared tiles of a block into one array: static shared memory up to 48 KB, dynamic above.
//
// A block can declare up to 48 KB of shared memory statically on any GPU. More (up to 227 KB) must be dynamic: the
// launch states the number of bytes, and the array is an external global without a size.
//
// Upstream's `gpu.dynamic_shared_memory` lowers to an internal global that LLVM places statically, where it overlaps
// other shared data and the results are wrong. No upstream op lays out several tiles in one array; hence
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
         message = "the shared memory of a block (shared_bytes) must be at most shared_memory_limit of the target"}
      ]} {
    // 48 KB is the limit of static shared memory on every GPU.
    "tc.pack_shared_memory"(%module) {static_limit = 49152 : i64} : (!transform.any_op) -> ()
    transform.apply_cse to %module : !transform.any_op
    transform.yield
  }
}
