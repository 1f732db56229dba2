// Limits a kernel's registers, so that `resident` blocks of it have room on a multiprocessor.
//
// ptxas gives a thread as many registers as it can use. Where fewer would do, more blocks run side by side, and one
// computes while another waits.
//
// Before:
//   llvm.func @matmul_kernel(...) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>}
// After, with resident = 4:
//   llvm.func @matmul_kernel(...) attributes {nvvm.kernel, nvvm.maxnreg = 128 : i32, ...}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @limit_registers(%module: !transform.any_op {transform.readonly})
      attributes {optimization, needs = ["lower_to_nvvm"], requires = [
        {condition = "resident * threads <= 2048",
         message = "a multiprocessor has 2048 threads: resident * threads must not be more"}]} {
    %kernels = "occupancy.limit_registers"(%module) {blocks = 4 : i64, knobs = {blocks = "resident"}}
      : (!transform.any_op) -> !transform.any_op
    transform.annotate %kernels "limited" : !transform.any_op
    transform.yield
  }
}
