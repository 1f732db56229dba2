// Converts copies to workspaces to a launch, before the launch of the matmul.
//
// One launch copies both operands, the first blocks one of them and the remaining blocks the other: for a small
// product, each launch takes a large part of the time. The launch waits for the kernels before it. With programmatic
// dependent launch, which starts its blocks while the previous kernel ends, 512^3 of f32 took 12.1 us instead of 7.9
// (docs/results/f32_front.json).
//
// A copy is bound by memory if enough bytes are in flight: 4.8 TB/s times about 0.7 us, over 132 multiprocessors, are
// 25 KB on each. Rows of odd length begin at any address, so that a load may cover one element only, 2 bytes. Each
// thread therefore loads 32 bytes before it stores any: 16 rows of one element, or 8 rows of two where the row length
// is a multiple of two. Adjacent threads copy adjacent elements of a row. Blocks are numbered along rows first, in the
// order of memory. In a copy to a transpose, the threads of a warp cover eight adjacent columns and four vectors of
// rows, so that loads and stores both cover whole sectors. With 32 adjacent columns per warp, the stores of a warp
// would be in 32 rows.
//
// Upstream's mapping of `scf.forall` to threads requires static extents, which tiles of such matrices do not have, and
// no upstream op moves the loads of a thread before its stores.
//
// Source: coalesced copies with several loads in flight per thread; CUDA C++ Best Practices Guide.
//
// Before:
//   memref.copy %A, %matrix {workspace} : memref<4096x8191xf16> to memref<4096x8191xf16, strided<[8192, 1]>>
// After:
//   gpu.launch blocks(...) in (16384, 1, 1) threads(...) in (128, 1, 1) {
//     scf.if %inside {
//       %0 = memref.load %A[%row, %column]
//       ... 15 more rows ...
//       memref.store %0, %alloc[%row, %column]
//       ... 15 more rows ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @map_repacking_to_threads(%module: !transform.any_op {transform.readonly}) {
    "tc.map_repacking_to_threads"(%module) {threads = 128 : i64, bytes = 32 : i64} : (!transform.any_op) -> ()
    transform.apply_cse to %module : !transform.any_op
    transform.yield
  }
}
