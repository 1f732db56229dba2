// Turns what is left of tensors into buffers; C is updated in place.
//
// The tensor form has done its work: tiles are cut, fused and staged. One-shot bufferization finds that every slice of
// C is written where it was read, so no copy of C appears and the tiles become views of the arguments.
//
// Before:
//   %c_tile = tensor.extract_slice %c_in[%i, %j] [128, 128] : tensor<512x512xf32> to tensor<128x128xf32>
// After:
//   %c_tile = memref.subview %C[%i, %j] [128, 128] : memref<512x512xf32> to memref<128x128xf32, strided<[512, 1], ...>>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @bufferize(%module: !transform.any_op {transform.readonly}) {
    %tensors = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.structured.eliminate_empty_tensors %tensors : !transform.any_op
    %func = transform.bufferization.one_shot_bufferize %tensors : (!transform.any_op) -> !transform.any_op

    // Types with unknown strides become known ones when canonicalization reaches the views' sources: twice, since the
    // views that CSE merges open up more of it.
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
