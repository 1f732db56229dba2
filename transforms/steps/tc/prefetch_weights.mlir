// Prefetches the first weights of a block to L2 while its producer prepares to load them.
//
// Until the first load of a block goes to HBM, its producer initializes the mbarriers, and TMA fetches the descriptor
// from memory, which is as far away as the weights. Consumers can compute the addresses immediately, and are idle: they
// prefetch the weights of the first k steps, so that the loads hit the L2 cache, or lines that are already being
// fetched. Prefetching more than two steps makes the kernel slower, since each row is then requested twice while HBM is
// busy.
//
// As in `load_weights_early`, weights may be read before the wait, and a prefetch delivers no data in any case. The
// kernel takes the pointer to the weights in addition to their descriptor.
//
// Left out: the first loads of a block wait for the descriptor.
//
// Before:
//   scf.if %leader {
//     nvgpu.mbarrier.init ...
//     scf.for %k = 0 to min(%end, 1024) step 128 { expect bytes of both; load %B_map[%j, %k] }
//   }
// After, with boxes of 128 rows:
//   scf.if %is_consumer {
//     scf.for %k = 0 to min(%end, 256) step 128 {
//       scf.for %row = %thread to 128 step 128 {
//         if %k + %row is inside of B { nvvm.prefetch level = L2 %address_of_b }
//       }
//     }
//   }
//   scf.if %leader { ... }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @prefetch_weights(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["load_weights_early"], when = "early_weights"} {
    "tc.prefetch_weights"(%module) {steps = 2 : i64} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
