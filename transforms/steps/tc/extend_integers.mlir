// Writes out the extension of i8 operands, from which the conversion to WMMA learns their sign.
//
// Integers of the IR have no sign, and WMMA has instructions for signed and for unsigned ones. Upstream's conversion
// loads a fragment as signed if an `arith.extsi` is what uses it. The contraction of a linalg.matmul has none, as it
// extends its operands itself. Contractions of other types stay as they are.
//
// Before:
//   %d = vector.contract ... %a, %b, %c : vector<16x16xi8>, vector<16x16xi8> into vector<16x16xi32>
// After:
//   %0 = arith.extsi %a : vector<16x16xi8> to vector<16x16xi32>
//   %1 = arith.extsi %b : vector<16x16xi8> to vector<16x16xi32>
//   %d = vector.contract ... %0, %1, %c : vector<16x16xi32>, vector<16x16xi32> into vector<16x16xi32>

module attributes {transform.with_named_sequence} {
  transform.named_sequence @extend_integers(%module: !transform.any_op {transform.readonly}) {
    "tc.extend_integers"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
