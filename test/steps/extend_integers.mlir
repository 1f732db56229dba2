// Operands of i8 are extended once each; contractions of other types stay.
//
// RUN: %stepladder-opt %s --pipeline wmma --step extend_integers --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @shared_operand(
// CHECK: [[A:%.+]] = arith.extsi %a : vector<16x16xi8> to vector<16x16xi32>
// CHECK: [[B:%.+]] = vector.transfer_read
// CHECK-NEXT: [[E:%.+]] = arith.extsi [[B]] : vector<16x16xi8> to vector<16x16xi32>
// CHECK-NOT: arith.extsi
// CHECK: vector.contract {{.*}} [[A]], [[E]], %c
// CHECK: vector.contract {{.*}} [[A]], [[E]], %d
// CHECK: // -----
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
!sum = vector<16x16xi32>
!part = vector<16x16xi8>
func.func @shared_operand(%a: !part, %B: memref<16x16xi8>, %c: !sum, %d: !sum) -> (!sum, !sum) {
  %zero = arith.constant 0 : i8
  %c0 = arith.constant 0 : index
  %b = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xi8>, !part
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %c : !part, !part into !sum
  %1 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %d : !part, !part into !sum
  return %0, %1 : !sum, !sum
}

// -----

// CHECK-LABEL: func.func @floats(
// CHECK-NOT: arith
// CHECK: return
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @floats(%a: vector<16x16xf16>, %b: vector<16x16xf16>, %c: vector<16x16xf32>) -> vector<16x16xf32> {
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %c : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
  return %0 : vector<16x16xf32>
}

// -----

// CHECK-LABEL: func.func @wide(
// CHECK-NOT: arith.extsi
// CHECK: return
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @wide(%a: vector<16x16xi32>, %b: vector<16x16xi32>, %c: vector<16x16xi32>) -> vector<16x16xi32> {
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %c : vector<16x16xi32>, vector<16x16xi32> into vector<16x16xi32>
  return %0 : vector<16x16xi32>
}
