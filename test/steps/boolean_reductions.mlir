// A contraction of matrices of booleans becomes one of integers; a reduction or an elementwise op with the same body
// stays what it is.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --through unroll_loops --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @product(
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK: arith.cmpi ne
func.func @product(%a: tensor<4x8xi1>, %b: tensor<8x6xi1>, %c: tensor<4x6xi1>) -> tensor<4x6xi1> {
  %r = linalg.matmul ins(%a, %b : tensor<4x8xi1>, tensor<8x6xi1>) outs(%c : tensor<4x6xi1>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// -----

// CHECK-LABEL: func.func @any_of_a_mask(
// CHECK-COUNT-1: linalg.generic
// CHECK: arith.andi {{.*}} : i1
// CHECK: arith.ori {{.*}} : i1
// CHECK-NOT: linalg.generic
#all = affine_map<(i, k) -> (i, k)>
#mask = affine_map<(i, k) -> (k)>
#rows = affine_map<(i, k) -> (i)>
func.func @any_of_a_mask(%a: tensor<4x8xi1>, %mask: tensor<8xi1>, %c: tensor<4xi1>) -> tensor<4xi1> {
  %r = linalg.generic {indexing_maps = [#all, #mask, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%a, %mask : tensor<4x8xi1>, tensor<8xi1>) outs(%c : tensor<4xi1>) {
  ^bb0(%x: i1, %m: i1, %out: i1):
    %both = arith.andi %x, %m : i1
    %any = arith.ori %out, %both : i1
    linalg.yield %any : i1
  } -> tensor<4xi1>
  return %r : tensor<4xi1>
}
