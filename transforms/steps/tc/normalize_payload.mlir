// Brings the matmul function to its normal form: memref arguments and tensor semantics inside.
//
// Tiling, fusion and staging work on tensors, where values have one definition and explicit uses, while the arguments
// of a kernel are buffers. The normal form combines both: `to_tensor` of every argument at entry and
// `materialize_in_destination` at exit. `restrict` states that arguments do not alias, which lets bufferization update
// C in place.
//
// The step accepts a function on memrefs, a function on tensors that returns the product, or the normal form, which it
// leaves unchanged. Upstream converts tensors to buffers and not buffers to tensors, hence `tc.normalize_payload`.
//
// The product need not be a `linalg.matmul` of two arguments: `linalg.generic` and `linalg.contract` with loops in any
// order, reshapes and transposes around the product, and extended operands are accepted too. The op reduces them to one
// `linalg.matmul` on reshaped buffers. Transposes become layouts, or the op swaps A and B; no element is copied.
// Upstream's `linalg-fuse-elementwise-ops` folds transposes and reshapes on tensors into a generic contraction with as
// many loops as the operands have dimensions, and `structured.specialize` names contractions of two-dimensional
// operands. No upstream op collapses the loops of a contraction to m, n and k, swaps its operands, or handles
// contractions on buffers.
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
