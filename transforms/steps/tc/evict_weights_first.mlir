// Loads weights with the L2 cache hint `evict_first`, since a kernel reads each of them once.
//
// A product of few rows reads each weight once. In the L2 cache, the lines of its weights evict lines that are read
// again: A, which every block loads, and C, which the next kernel reads. With the cache hint `evict_first`, the lines
// of the weights are evicted first. The hint is set on loads of the operand that `load_weights_early` or
// `prefetch_to_l2` reads ahead of the wait, and without these steps on loads of the larger operand.
//
// `kept_weights` is the number of sixteenths of these lines that are loaded without the hint, so that the L2 cache
// keeps them from launch to launch. If the operands do not fit in L2 and every launch reads them in the same order, a
// hint on all lines evicts most of them before their next use, and so does no hint at all.
//
// Left out: the loads have no cache hint.
//
// Source: CUTLASS, whose TMA loads take such hints (`TMA::CacheHintSm90::EVICT_FIRST`). The ops of NVGPU have no
// operand for them.
//
// Before:
//   nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %B_map, %barrier, box[%k, %j] : !llvm.ptr<7>, !llvm.ptr
// After:
//   %evict_first = llvm.mlir.constant(0x12F0000000000000 : i64)
//   nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %B_map, %barrier, box[%k, %j] l2_cache_hint = %evict_first
//     : !llvm.ptr<7>, !llvm.ptr

module attributes {transform.with_named_sequence} {
  transform.named_sequence @evict_weights_first(%module: !transform.any_op {transform.readonly})
      attributes {optimization, when = "streams_weights or kept_weights > 0"} {
    "tc.evict_first"(%module) {kept = 0 : i64, knobs = {kept = "kept_weights"}} : (!transform.any_op) -> ()
    transform.yield
  }
}
