// Lets the loads of the ring run ahead of the products, in one and the same thread.
//
// As the ring stands, a step of k issues its loads and waits for them. In this step the first slots are filled in front
// of the loop, and the loop issues the loads of the step that is `stages` - 1 ahead, behind its product: the latency of
// a load has that many products to hide behind.
//
// Source: Ozen, "Hopper GEMM in MLIR", the multistage kernel.
//
// Before:
//   scf.for %k { issue(%k); wait; product; release }
// After, with stages = 4:
//   scf.for %k = 0 to 192 step 64 { issue(%k) }
//   scf.for %k { wait; product; release; if %k + 192 < 8192 { issue(%k + 192) } }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @multistage_loads(%module: !transform.any_op {transform.readonly})
      attributes {optimization, requires = [
        {condition = "stages > 1", message = "stages must be at least 2"}
      ]} {
    "tc.multistage_loads"(%module) {stages = 4 : i64, knobs = {stages = "stages"}} : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.yield
  }
}
