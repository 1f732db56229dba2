// Distributes the elements of an elementwise op or a reduction over blocks of 256 threads.
//
// A thread computes an element of the result, for any number of axes and any size; threads beyond the last element are
// masked. Where the innermost axis of the result is that of the operands too, and there are many elements, a thread
// loads, computes and stores vectors of 16 bytes: with one element per thread, too few bytes are in flight to saturate
// the memory. Where rows are no such vectors, a thread computes four elements of a short body, each a block's width
// from the one before. Where the operand of another order has another axis innermost (a transpose), a thread loads 4
// bytes of each of several of its rows, and stores vectors of 16 bytes to the rows that its columns become; four
// neighbouring threads store 64 adjacent bytes, and a warp loads whole sectors of the L2 cache.
//
// A reduction along the innermost axis takes a warp for each element: neighbouring lanes read neighbouring values, and
// combine their results by shuffles. A reduction along another axis does so too, for as many neighbours as are 16
// bytes, if there are so few results that threads of one each would not saturate the memory. The index of an extremum
// of many values takes a block. f16 and bf16 are accumulated in f32, because a sum of 4096 values in f16 has no
// accurate digits. Upstream tiles linalg ops to loops of as many dimensions as the op has, of which a grid maps three.
//
// Before:
//   linalg.generic ... ins(%x : memref<2x4x256xf16>) outs(%y : memref<2x4x256xf16>) { math.tanh }
// After:
//   gpu.launch blocks(...) in (8, 1, 1) threads(...) in (256, 1, 1) {
//     %i = affine.apply (b * 256 + t)[%b = gpu.block_id x, %t = gpu.thread_id x]
//     scf.if %i < 2048 {
//       %v = memref.load %x[%i floordiv 1024, (%i floordiv 256) mod 4, %i mod 256]
//       %r = math.tanh %v
//       memref.store %r, %y[...]

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @distribute_elements(%module: !transform.any_op {transform.readonly}) {
    %copies = transform.structured.match ops{["linalg.copy"]} in %module : (!transform.any_op) -> !transform.any_op
    %generic = transform.structured.generalize %copies : (!transform.any_op) -> !transform.any_op
    // Loops over blocks and threads (`scf.forall`), which upstream maps to a launch; no barrier follows, as threads do
    // not exchange values through memory.
    "tc.distribute_elements"(%module) {threads = 256 : i64} : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %function generate_gpu_launch
      : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [256, 1, 1] sync_after_distribute = false
      : (!transform.any_op) -> !transform.any_op
    // The kernel takes whole buffers, and not views of them.
    "tc.sink_views"(%module) : (!transform.any_op) -> ()
    %after = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%after) : (!transform.any_op) -> ()
    transform.yield
  }
}
