// Issues the TMA loads `stages` - 1 k steps ahead of the products, from a consumer thread (multistage pipeline).
//
// `convert_to_wgmma` creates a loop whose k steps issue their loads and wait for them. This step issues the loads of
// the first stages in a prologue. In each iteration, after the product, it issues the loads for the k step `stages` - 1
// ahead, so that this many products hide the latency of a load.
//
// Left out: each k step issues its loads and waits for them.
//
// Source: Ozen, "Hopper GEMM in MLIR", the multistage kernel.
//
// Before:
//   scf.for %k { issue(%k); wait; product; release }
// After, with stages = 4:
//   scf.for %k = 0 to 192 step 64 { issue(%k) }
//   scf.for %k { wait; product; release; if %k + 192 < 8192 { issue(%k + 192) } }

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @multistage_loads(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
        {condition = "stages > 1", message = "stages must be at least 2"}
      ]} {
    "tc.multistage_loads"(%module) {stages = 4 : i64, knobs = {stages = "stages"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
