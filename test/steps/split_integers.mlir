// Products of integers of 16 or 32 bits become products of their digits of 8 bits, whose sums are shifted and added.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step split_integers --split-input-file \
// RUN:   | FileCheck %s

// The sums have more bits than the operands: the high digits have the signs, and the low ones are unsigned. What the
// sums start from is added last.
//
// CHECK-LABEL: func.func @unsigned_low_digits(
// CHECK: %[[A0:.+]] = linalg.generic {{.*}} ins(%a : tensor<8x16xi16>) outs(%{{.*}} : tensor<8x16xi8>)
// CHECK: arith.trunci %{{.*}} : i16 to i8
// CHECK: %[[A1:.+]] = linalg.generic {{.*}} ins(%a : tensor<8x16xi16>)
// CHECK: arith.shrui %{{.*}}, %c8_i16
// CHECK: %[[B0:.+]] = linalg.generic {{.*}} ins(%b : tensor<16x32xi16>)
// CHECK: %[[B1:.+]] = linalg.generic {{.*}} ins(%b : tensor<16x32xi16>)
// CHECK: %[[HIGH:.+]] = linalg.generic {{.*}} ins(%[[A1]], %[[B1]] : tensor<8x16xi8>, tensor<16x32xi8>)
// CHECK-NEXT: ^bb0([[X:%.+]]: i8, [[Y:%.+]]: i8, [[S:%.+]]: i32):
// CHECK-NEXT: arith.extsi [[X]]
// CHECK-NEXT: arith.extsi [[Y]]
// CHECK: %[[SHIFTED:.+]] = linalg.generic {{.*}} ins(%[[HIGH]] : tensor<8x32xi32>)
// CHECK: arith.shli %{{.*}}, %c8_i32
// CHECK: %[[MIDDLE:.+]] = linalg.generic {{.*}} ins(%[[A0]], %[[B1]] :
// CHECK-NEXT: ^bb0([[X:%.+]]: i8, [[Y:%.+]]: i8, [[S:%.+]]: i32):
// CHECK-NEXT: arith.extui [[X]]
// CHECK-NEXT: arith.extsi [[Y]]
// CHECK: %[[FIRST:.+]] = linalg.generic {{.*}} ins(%[[MIDDLE]], %[[SHIFTED]] :
// CHECK-NOT: arith.shli
// CHECK: %[[OTHER:.+]] = linalg.generic {{.*}} ins(%[[A1]], %[[B0]] :
// CHECK: %[[SECOND:.+]] = linalg.generic {{.*}} ins(%[[OTHER]], %[[FIRST]] :
// CHECK: arith.addi
// CHECK: arith.shli %{{.*}}, %c8_i32
// CHECK: %[[LOW:.+]] = linalg.generic {{.*}} ins(%[[A0]], %[[B0]] :
// CHECK: arith.extui
// CHECK: arith.extui
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}} ins(%[[LOW]], %[[SECOND]] :
// CHECK: %[[R:.+]] = linalg.generic {{.*}} ins(%[[SUM]], %c : tensor<8x32xi32>, tensor<8x32xi32>)
// CHECK: return %[[R]]
func.func @unsigned_low_digits(%a: tensor<8x16xi16>, %b: tensor<16x32xi16>, %c: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xi16>, tensor<16x32xi16>) outs(%c : tensor<8x32xi32>) -> tensor<8x32xi32>
  return %r : tensor<8x32xi32>
}

// -----

// The sums wrap at the bits of the operands: all digits have a sign, and the product of the high ones is left out. Sums
// of i16 are cut off.
//
// CHECK-LABEL: func.func @signed_digits(
// CHECK: %[[A0:.+]] = linalg.generic {{.*}} ins(%a : tensor<8x16xi16>)
// CHECK: arith.addi %{{.*}}, %c-32640_i16
// CHECK: arith.trunci
// CHECK: arith.xori %{{.*}}, %c-128_i8
// CHECK-COUNT-3: arith.muli
// CHECK-NOT: arith.muli
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8x32xi16>)
// CHECK: arith.trunci %{{.*}} : i32 to i16
func.func @signed_digits(%a: tensor<8x16xi16>, %b: tensor<16x32xi16>) -> tensor<8x32xi16> {
  %zeros = arith.constant dense<0> : tensor<8x32xi16>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xi16>, tensor<16x32xi16>) outs(%zeros : tensor<8x32xi16>)
    -> tensor<8x32xi16>
  return %r : tensor<8x32xi16>
}

// -----

// Matrix units multiply numbers of i8, with zero points too.
//
// CHECK-LABEL: func.func @stays(
// CHECK: linalg.quantized_matmul
// CHECK: linalg.matmul
// CHECK-NOT: linalg.generic
func.func @stays(%a: tensor<8x16xi8>, %b: tensor<16x32xi8>, %c: tensor<8x32xi32>)
    -> (tensor<8x32xi32>, tensor<8x32xi32>) {
  %c3 = arith.constant 3 : i32
  %q = linalg.quantized_matmul ins(%a, %b, %c3, %c3 : tensor<8x16xi8>, tensor<16x32xi8>, i32, i32)
    outs(%c : tensor<8x32xi32>) -> tensor<8x32xi32>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xi8>, tensor<16x32xi8>) outs(%c : tensor<8x32xi32>) -> tensor<8x32xi32>
  return %q, %r : tensor<8x32xi32>, tensor<8x32xi32>
}

// -----

// Of what an op in front extends, the digits are those of the narrow numbers: here one. Transposes come again.
//
// CHECK-LABEL: func.func @extended_before(
// CHECK: %[[B:.+]] = linalg.transpose ins(%b : tensor<32x16xi8>) outs(%{{.*}} : tensor<16x32xi8>) permutation = [1, 0]
// CHECK: linalg.generic {{.*}} ins(%a, %[[B]] : tensor<8x16xi8>, tensor<16x32xi8>) outs(%{{.*}} : tensor<8x32xi32>)
// CHECK: arith.extui
// CHECK: arith.extsi
// CHECK: arith.muli
// CHECK-NOT: arith.muli
// CHECK: arith.extsi %{{.*}} : i32 to i64
#same = affine_map<(i, j) -> (i, j)>
func.func @extended_before(%a: tensor<8x16xi8>, %b: tensor<32x16xi8>) -> tensor<8x32xi64> {
  %ex = tensor.empty() : tensor<8x16xi32>
  %x = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<8x16xi8>) outs(%ex : tensor<8x16xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extui %in : i8 to i32
    linalg.yield %0 : i32
  } -> tensor<8x16xi32>
  %ey = tensor.empty() : tensor<32x16xi32>
  %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<32x16xi8>) outs(%ey : tensor<32x16xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extsi %in : i8 to i32
    linalg.yield %0 : i32
  } -> tensor<32x16xi32>
  %et = tensor.empty() : tensor<16x32xi32>
  %t = linalg.transpose ins(%y : tensor<32x16xi32>) outs(%et : tensor<16x32xi32>) permutation = [1, 0]
  %zeros = arith.constant dense<0> : tensor<8x32xi64>
  %r = linalg.matmul ins(%x, %t : tensor<8x16xi32>, tensor<16x32xi32>) outs(%zeros : tensor<8x32xi64>)
    -> tensor<8x32xi64>
  return %r : tensor<8x32xi64>
}

// -----

// A constant has no narrower operand.
// CHECK-LABEL: func.func @by_constant(
// CHECK-COUNT-4: arith.muli
func.func @by_constant(%a: tensor<8x16xi16>) -> tensor<8x32xi32> {
  %b = arith.constant dense<3> : tensor<16x32xi16>
  %zeros = arith.constant dense<0> : tensor<8x32xi32>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xi16>, tensor<16x32xi16>) outs(%zeros : tensor<8x32xi32>)
    -> tensor<8x32xi32>
  return %r : tensor<8x32xi32>
}
