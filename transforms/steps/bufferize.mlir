// Bufferizes the remaining tensors and updates C in place.
//
// Tiling, fusion and staging are done and no longer need tensors. One-shot bufferization proves that every slice of C
// is written where it is read, so that it inserts no copy of C, and tiles become views of the arguments.
//
// Before:
//   %c_tile = tensor.extract_slice %c_in[%i, %j] [128, 128] : tensor<512x512xf32> to tensor<128x128xf32>
// After:
//   %c_tile = memref.subview %C[%i, %j] [128, 128] : memref<512x512xf32> to memref<128x128xf32, strided<[512, 1], ...>>

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @canonicalize(!transform.any_op {transform.readonly})

  transform.named_sequence @bufferize(%module: !transform.any_op {transform.readonly}) {
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    // Without it, a tile that starts from `tensor.empty` gets a separate buffer and a copy to C.
    transform.structured.eliminate_empty_tensors %tensors : !transform.any_op
    %func = transform.bufferization.one_shot_bufferize %tensors : (!transform.any_op) -> !transform.any_op

    // Bufferization gives views dynamic strides; canonicalization makes them static once the source of a view is
    // static. This takes a second round of patterns, after CSE has merged views.
    transform.include @canonicalize failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
