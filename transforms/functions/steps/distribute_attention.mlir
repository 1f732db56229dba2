// Distributes an attention over blocks and warpgroups, with the scores in registers.
//
// A block computes 64 queries of a head for each warpgroup, and reads the keys and values a tile at a time, to shared
// memory. If the queries of all heads that share keys and values are no more than a block computes, as of one token
// that attends to a cache, they are rows of one tile, so that keys and values are read once for all these heads. Where
// there are few heads, blocks of a cluster have a part of the keys each (splits): each has its own largest scores and
// sums, and combines those of all for some of the results (split-KV).
//
// The products of queries and keys are an accumulator of `wgmma`; a thread has two rows of it, and computes the
// elementwise ops and the exponentials of what it has. After rounding, these are the register operand of the product
// with the values. The maximum of a row is known only after its last tile: with each tile that raises it, the running
// sum and results are rescaled by the exponential of the difference (online softmax). After the last tile, the results
// are divided by the sums. Weights that the payload does not round are the sum of two numbers of the values' type,
// which two products multiply: matrix units have no operand of f32.
//
// With a causal mask, a block reads keys up to its last query's, and masks only tiles that reach beyond its first one
// (with math = fast: a masked value that is infinite or NaN is not multiplied by zero).
//
// Source: FlashAttention-2 (Dao, 2023); online softmax (Milakov and Gimelshein, 2018); Flash-Decoding (Dao et al.,
// 2023).
//
// Before:
//   %s = linalg.contract ... ins(%q, %k : ...) outs(%zeros : tensor<8x4x2048x2048xf32>)
//   ... softmax ...
//   %o = linalg.contract ... ins(%p, %v : ...) outs(%0 : tensor<2048x8x4x128xf32>)
// After:
//   gpu.launch blocks(...) in (512, 1, 1) threads(...) in (256, 1, 1) {
//     scf.for %key = 0 to %end step 128 iter_args(%o, %max, %sum, ...) {
//       nvgpu.device_async_copy %K[...], %keys[...]; ... %V[...], %values[...]
//       gpu.barrier
//       %s = nvgpu.warpgroup.mma %queries, %keys, %zeros
//       ... maxima, exponentials, sums
//       %p = arith.truncf ...
//       %o2 = tc.warpgroup_mma_registers %p, %values, %scaled
//       gpu.barrier

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @distribute_attention(%module: !transform.any_op {transform.readonly}) {
    "tc.distribute_attention"(%module) {columns = 128 : i64, warpgroups = 2 : i64, splits = 1 : i64, fast = 1 : i64,
      knobs = {columns = "columns", warpgroups = "warpgroups", splits = "splits",
        fast = "1 if math == 'fast' else 0"}} : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %function generate_gpu_launch
      : (!transform.any_op) -> !transform.any_op
    "tc.form_clusters"(%launch) {rows = 1 : i64, columns = 1 : i64, knobs = {columns = "splits"}}
      : (!transform.any_op) -> ()
    %clusters = transform.structured.match ops{["gpu.launch"]} in %module : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %clusters block_dims = [256, 1, 1]
      sync_after_distribute = false {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op
    // Slices of tensors, such as queries beside keys and values, are strides of the buffer.
    "tc.sink_views"(%module) : (!transform.any_op) -> ()
    %after = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%after) : (!transform.any_op) -> ()
    transform.yield
  }
}
