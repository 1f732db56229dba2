// Gives the matmul function buffers at its boundary and tensors inside.
//
// Tiling, fusion and staging work on tensors, where a value has one definition and its uses; a kernel's arguments are
// buffers. The normal form has both: `to_tensor` of every argument on the way in, `materialize_in_destination` on the
// way out. `restrict` says that no two arguments overlap, which is what lets bufferization write C in place.
//
// Accepted: a function on memrefs, a function on tensors that returns the product, or the normal form, which stays as
// it is. Upstream turns tensors into buffers (bufferization) and has nothing for the other way, hence
// `tc.normalize_payload`.
//
// Before:
//   func.func @matmul(%A: memref<512x512xf16>, %B: memref<512x512xf16>, %C: memref<512x512xf32>) {
//     linalg.matmul ins(%A, %B : ...) outs(%C : memref<512x512xf32>)
// After:
//   func.func @matmul(%A: memref<512x512xf16>, %B: memref<512x512xf16>, %C: memref<512x512xf32>) {
//     %a = bufferization.to_tensor %A restrict : memref<512x512xf16> to tensor<512x512xf16>
//     ...
//     %c = bufferization.to_tensor %C restrict writable : memref<512x512xf32> to tensor<512x512xf32>
//     %product = linalg.matmul ins(%a, %b : ...) outs(%c : tensor<512x512xf32>) -> tensor<512x512xf32>
//     bufferization.materialize_in_destination %product in restrict writable %C

module attributes {transform.with_named_sequence} {
  transform.named_sequence @normalize_payload(%module: !transform.any_op {transform.readonly}) {
    "tc.normalize_payload"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
