// Splits products of integers that no matrix unit multiplies into products of their digits of 8 bits.
//
// Matrix units multiply i8. An integer of 16 or 32 bits is a sum of digits times powers of 256, and a product of two
// integers the sum of the products of their digits. Sums of i32 wrap, so that ten products of i8 compute one of i32
// exactly, and four one of i16. Each is a matmul, and its epilogue adds the sum of the previous ones and shifts it to
// the next digit. Signed digits need no correction: those of x are the bytes of x + 0x80808080, minus 128. Where sums
// have more bits than an operand, its lower digits are unsigned, and `outline_matmuls` corrects for their zero points.
//
// Source: integers of several digits on matrix units, as in the Ozaki scheme on INT8 by Ootomo, Ozaki and Yokota
// (2024).
//
// Before:
//   %c = linalg.matmul ins(%a, %b : tensor<8x16xi16>, tensor<16x32xi16>) outs(%zeros : tensor<8x32xi32>)
// After:
//   %a0 = linalg.generic ins(%a : tensor<8x16xi16>) outs(... : tensor<8x16xi8>) { arith.trunci }
//   %a1 = linalg.generic ins(%a : tensor<8x16xi16>) outs(... : tensor<8x16xi8>) { arith.shrui 8, arith.trunci }
//   ...
//   %11 = linalg.generic ins(%a1, %b1 : ...) outs(%zeros : tensor<8x32xi32>) { arith.extsi, extsi, muli, addi }
//   %s1 = linalg.generic ins(%11 : ...) { arith.shli 8 }
//   %10 = linalg.generic ins(%a1, %b0 : ...) outs(%zeros : tensor<8x32xi32>) { arith.extsi, extui, muli, addi }
//   %s2 = linalg.generic ins(%10, %s1 : ...) { arith.addi }
//   ...

module attributes {transform.with_named_sequence} {
  transform.named_sequence @split_integers(%module: !transform.any_op {transform.readonly}) {
    "tc.split_integers"(%module) : (!transform.any_op) -> ()
    transform.yield
  }
}
