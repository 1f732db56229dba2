// Writes out the extension of i8 operands, from which the conversion to WMMA learns their sign.
//
// Integers of the IR have no sign, and WMMA has instructions for signed and for unsigned integers. Upstream's
// conversion loads a fragment as signed if its user is an `arith.extsi`, which the contraction of a linalg.matmul
// lacks, as it extends its operands implicitly. The step does not change contractions of other types.
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
    transform.apply_cse to %module : !transform.any_op
    transform.yield
  }
}
