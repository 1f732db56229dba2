// Fuses the elementwise ops on the product into one op, which the epilogue computes on the accumulators.
//
// A consumer in a separate kernel reads and writes C once more, 256 MiB at 8192 x 8192 in f16, and runs after the
// product. In the epilogue, the product is in registers already; only a bias or a matrix is left to read, each element
// once. The step generalizes named ops, and upstream's fusion of elementwise ops merges a chain, with broadcasts and
// constants, into one `linalg.generic`. The fusion leaves the matmul alone, whose loops are not all parallel.
//
// `tc.normalize_consumer` then orders the operands: the product is the first input and C is the output, which also
// gives the previous value of C where the op reads it. A product that starts from a matrix (C = AB + C) starts from
// zeros here, and the consumer adds the matrix. Without elementwise ops the step changes nothing.
//
// A sum or an extremum of rows or columns is a further result. `tc.separate_reductions` first splits it in two: an
// elementwise op writes the values to a workspace, and a function that is called after the stores folds the workspace.
// The op is fused with the others. The epilogue replaces the workspace and the call, and folds in registers. Upstream's
// `transform.structured.tile_reduction_using_forall` computes partial results too, but of a reduction in an op of its
// own.
//
// Source: elementwise fusion as in linalg's tutorial of tiling and fusion; CC'22 leaves consumers to later kernels.
//
// Before:
//   %bias_rows = linalg.broadcast ins(%bias : tensor<512xf32>) outs(%0 : tensor<512x512xf32>) dimensions = [0]
//   %sums = linalg.matmul ins(%a, %b : ...) outs(%zeros : tensor<512x512xf32>)
//   %biased = linalg.add ins(%sums, %bias_rows : ...) outs(%0 : tensor<512x512xf32>)
//   %relu = linalg.max ins(%biased, %zeros : ...) outs(%c : tensor<512x512xf32>)
// After:
//   %sums = linalg.matmul ins(%a, %b : ...) outs(%zeros : tensor<512x512xf32>)
//   %relu = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (j), (i, j) -> (i, j)], ...}
//       ins(%sums, %bias : tensor<512x512xf32>, tensor<512xf32>) outs(%c : tensor<512x512xf32>) {
//     %x = arith.addf %sum, %b : f32
//     %y = arith.maximumf %x, %zero : f32
//     linalg.yield %y : f32
//   }
//
// Before, with a reduction:
//   %rows = linalg.reduce ins(%sums : tensor<512x512xf32>) outs(%zeros_of_rows : tensor<512xf32>) dimensions = [1]
// After:
//   %c, %folded = linalg.generic ... outs(%c_in, %workspace : tensor<512x512xf16>, tensor<512x512xf32>)
//   func.call @reduction(%workspace_buffer, %R)   // linalg.map and linalg.reduce

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @generalize_elementwise(!transform.any_op {transform.readonly})
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @fuse_consumers(%module: !transform.any_op {transform.readonly}) {
    transform.tune.alternatives<"has_consumer"> selected_region = 0
        attributes {knobs = {selected_region_attr = "has_consumer"}} {
    }, {
      transform.include @generalize_elementwise failures(propagate) (%module) : (!transform.any_op) -> ()
      "tc.separate_reductions"(%module) : (!transform.any_op) -> ()
      %func = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      %fused = transform.apply_registered_pass "linalg-fuse-elementwise-ops" to %func
        : (!transform.any_op) -> !transform.any_op
      transform.apply_cse to %fused : !transform.any_op
      "tc.normalize_consumer"(%module) : (!transform.any_op) -> ()

      %normal = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
      transform.include @canonicalize failures(propagate) (%normal) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
