// The first of two matmuls moves to the second, and the view of its result behind both.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step gather_products --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @pair(
// CHECK: tensor.empty()
// CHECK-NEXT: tensor.extract_slice %g
// CHECK-NEXT: [[P:%.+]] = linalg.matmul ins(%a, %b :
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: tensor.extract_slice [[P]][0, 0] [8, 16]
// CHECK-NEXT: linalg.exp
// CHECK-NEXT: arith.addf [[P]],
func.func @pair(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>, %g: tensor<64x16xf16>, %c: tensor<16x16xf32>)
    -> (tensor<8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %e = tensor.empty() : tensor<16x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x16xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %inside = tensor.extract_slice %p[0, 0] [8, 16] [1, 1] : tensor<16x16xf32> to tensor<8x16xf32>
  %rows = tensor.extract_slice %g[0, 0] [32, 16] [1, 1] : tensor<64x16xf16> to tensor<32x16xf16>
  %q = linalg.matmul ins(%a, %rows : tensor<16x32xf16>, tensor<32x16xf16>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %powers = linalg.exp ins(%q : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %sum = arith.addf %p, %q : tensor<16x16xf32>
  return %inside, %powers, %sum : tensor<8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

func.func @chain(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  // expected-error@+1 {{tc.gather_products: it reads the result of the first matmul}}
  %q = linalg.matmul ins(%p, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %q : tensor<16x16xf32>
}

// -----

// expected-error@unknown {{tc.gather_products: expected two matmuls in one block, found 2}}
func.func @nested(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>, %is: i1) -> tensor<16x16xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = scf.if %is -> tensor<16x16xf32> {
    %q = linalg.matmul ins(%a, %c : tensor<16x16xf32>, tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.yield %q : tensor<16x16xf32>
  } else {
    scf.yield %p : tensor<16x16xf32>
  }
  return %r : tensor<16x16xf32>
}
