// Distributes the rows of a chain of linalg ops over lanes, warps or blocks of threads, by the length of the rows.
//
// The threads of a row fold its columns for each reduction, and exchange their results by shuffles, and through shared
// memory where they are several warps. Elementwise ops are recomputed at each use, because arithmetic takes less time
// than memory accesses. Where rows of the buffers are vectors of 16 bytes, a thread loads and stores those, else single
// columns; it loads up to four of them before it computes, so that the loads overlap. A row of a few vectors takes as
// many lanes, and a warp has several rows; other rows of up to 512 columns take a warp, and longer ones a block of
// `threads`, unless the lanes of a warp can keep the row in registers. A row of at most four vectors per thread, or
// eight per lane, is loaded once; a longer one is read again from the L1 cache.
//
// Before:
//   linalg.generic ... ins(%x : memref<128x64xf32>) outs(%max : memref<128xf32>) { arith.maximumf }
//   linalg.generic ... ins(%x, %max : ...) outs(%y : memref<128x64xf32>) { arith.subf, math.exp }
// After:
//   gpu.launch blocks(...) in (16, 1, 1) threads(...) in (256, 1, 1) {
//     %row = affine.apply (b * 8 + t floordiv 32)[%b = gpu.block_id x, %t = gpu.thread_id x]
//     scf.if %row < 128 {
//       %m = scf.for %column = %lane to 64 step 32 ... { memref.load %x[%row, %column], arith.maximumf }
//       %max = gpu.shuffle xor %m, ...
//       scf.for %column = %lane to 64 step 32 { arith.subf, math.exp, memref.store ..., %y[%row, %column] }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @distribute_rows(%module: !transform.any_op {transform.readonly}) {
    // Loops over blocks and threads (`scf.forall`), with barriers of their own where threads exchange values in memory.
    "tc.distribute_rows"(%module) {threads = 256 : i64, knobs = {threads = "threads"}} : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %function generate_gpu_launch
      : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [256, 1, 1] sync_after_distribute = false
      {knobs = {block_dims = "[threads, 1, 1]"}}
      : (!transform.any_op) -> !transform.any_op
    // The kernel takes whole buffers, and not views of them.
    "tc.sink_views"(%module) : (!transform.any_op) -> ()
    %after = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%after) : (!transform.any_op) -> ()
    transform.yield
  }
}
