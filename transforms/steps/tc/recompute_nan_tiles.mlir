// Computes a tile of an f32 C again if one of its sums is NaN, by products that keep infinities.
//
// `multiply_as_3xtf32` splits an infinity into itself and NaN, and a value of 3.4026e38 or more, whose first 11 bits
// round to an infinity, into two infinities: the sums of such a value's products are always NaN. A split that keeps
// them (`split_into_tf32`) takes almost three times as many ops in the main loop. The step tests the accumulators after
// the loop instead: if one of a block is NaN, the block repeats its products with that split. Sums that are NaN in the
// payload, such as an infinity minus an infinity, are NaN the second time too.
//
// A block without NaN compares each of its sums once, and its threads meet at one more barrier. The kernel has twice
// the code. LLVM and ptxas would keep addresses of the main loop in registers for the repeated one, and spill others in
// the main loop. Therefore the repeated ops compute their addresses again, from ids to which the sign bit of a counter
// is added. It is never set, but the compilers cannot know that. Spills are then in the repeated loop, if anywhere.
// With `keep_infinities=false` the step does not run.
//
// The step runs before `multiply_as_3xtf32`, which recognizes the repeated products by a mark and splits their operands
// in the other way. It does not change products of other types, nor those that `allow_tf32` marks as tf32.
//
// Before:
//   %a = nvgpu.device_async_copy %A[...], %shared_a[...]
//   %sums:4 = scf.for %k = ... { ... nvgpu.mma.sync ... }
//   vector.store %sums#0, %C[...]
// After:
//   %a = nvgpu.device_async_copy %A[...], %shared_a[...]
//   %sums:4 = scf.for %k = ... { ... nvgpu.mma.sync ... }
//   %own = arith.cmpf uno, %sums#0, %sums#1
//   %threads = nvvm.barrier.reduction #nvvm.reduction<popc> %own
//   %right:4 = scf.if (%threads != 0) {
//     nvvm.cp.async.wait.group 0
//     %a_again = nvgpu.device_async_copy %A[...], %shared_a[...]
//     %again:4 = scf.for %k = ... { ... nvgpu.mma.sync ... {keeps_infinities} ... }
//     scf.yield %again#0, ...
//   } else {
//     scf.yield %sums#0, ...
//   }
//   vector.store %right#0, %C[...]

module attributes {transform.with_named_sequence} {
  transform.named_sequence @recompute_nan_tiles(%module: !transform.any_op {transform.readonly})
      attributes {requires = [
        {condition = "hoist_accumulators",
         message = "keep_infinities requires accumulators in registers: hoist_accumulators must run"}
      ]} {
    "tc.recompute_nan_tiles"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
