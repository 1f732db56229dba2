// Elects the thread that issues loads by `elect.sync`, instead of comparing thread indices.
//
// The operands of a TMA load are in uniform registers, of which a warp has one set. If the thread is selected by its
// index, ptxas does not know that only one thread is active, and puts a loop over the active threads around every load.
// With `elect.sync` it knows, and moves the operands to uniform registers once. It does not matter which thread is
// elected.
//
// All threads of a warp have to execute `elect.sync` together, which holds because the warp index is uniform.
//
// Before:
//   nvvm.setmaxregister decrease 40
//   scf.if %thread == 256 { scf.for %k { wait empty; loads } }
// After:
//   nvvm.setmaxregister decrease 40
//   scf.if %warp == 8 {
//     %elected = nvvm.elect.sync
//     scf.if %elected { scf.for %k { wait empty; loads } }
//   }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @elect_producer(%module: !transform.any_op {transform.readonly})
      attributes {needs = ["specialize_warps"]} {
    "tc.elect_producer"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
