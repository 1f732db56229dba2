// Moves the addition of C into an op after the product, where tiles extend beyond the edges of the problem.
//
// Where tiles do not divide m, n and k, the products still have whole tiles: A and B are zero-filled beyond their
// edges, and stores to C are predicated. An accumulator that is initialized from C would need predicated loads of C. It
// starts from zeros instead, and the op that writes C adds the previous value of C. Elementwise ops on the product
// already work this way (`fuse_consumers`), and C = AB adds nothing.
//
// The step stores the sizes, layouts and operand type of the problem as attributes of the function. Later steps derive
// from them which tiles have edges and how wide the vectors of a row may be, also in a run that begins from a dump
// without the matmul.
//
// Source: zero fill of operands and predicated stores of C, as in CUTLASS's kernels at the edges of a problem.
//
// Before:
//   func.func @matmul(...) {
//     %product = linalg.matmul ins(%a, %b : tensor<100x40xf16>, tensor<40x72xf16>) outs(%c : tensor<100x72xf32>)
// After:
//   func.func @matmul(...) attributes {size_m = 100, size_n = 72, size_k = 40, ...} {
//     %zeros = linalg.fill ins(0) outs(%empty : tensor<100x72xf32>)
//     %product = linalg.matmul ins(%a, %b : ...) outs(%zeros : tensor<100x72xf32>)
//     %sum = linalg.generic ins(%product : ...) outs(%c : ...) { arith.addf }

module attributes {transform.with_named_sequence} {
  transform.named_sequence @prepare_edges(%module: !transform.any_op {transform.readonly}) {
    "tc.separate_accumulation"(%module) : (!transform.any_op) -> ()

    %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %m = transform.param.constant 100 : i64 {knobs = {value = "m"}} -> !transform.param<i64>
    transform.annotate %func "size_m" = %m : !transform.any_op, !transform.param<i64>
    %n = transform.param.constant 72 : i64 {knobs = {value = "n"}} -> !transform.param<i64>
    transform.annotate %func "size_n" = %n : !transform.any_op, !transform.param<i64>
    %k = transform.param.constant 40 : i64 {knobs = {value = "k"}} -> !transform.param<i64>
    transform.annotate %func "size_k" = %k : !transform.any_op, !transform.param<i64>
    %bits = transform.param.constant 16 : i64 {knobs = {value = "a_bits"}} -> !transform.param<i64>
    transform.annotate %func "operand_bits" = %bits : !transform.any_op, !transform.param<i64>
    %type = transform.param.constant "f16" {knobs = {value = "a_type"}} -> !transform.any_param
    transform.annotate %func "operand_type" = %type : !transform.any_op, !transform.any_param
    %consumer = transform.param.constant 0 : i64 {knobs = {value = "has_consumer"}} -> !transform.param<i64>
    transform.annotate %func "has_consumer" = %consumer : !transform.any_op, !transform.param<i64>
    %a_layout = transform.param.constant "row" {knobs = {value = "a_layout"}} -> !transform.any_param
    transform.annotate %func "a_layout" = %a_layout : !transform.any_op, !transform.any_param
    %b_layout = transform.param.constant "row" {knobs = {value = "b_layout"}} -> !transform.any_param
    transform.annotate %func "b_layout" = %b_layout : !transform.any_op, !transform.any_param
    transform.yield
  }
}
