// A matmul in i64 whose sums are truncated is one in i32; one whose sums are read as they are stays. The body of a matmul
// subtracts zero points that the caller passes, and that an op before a transpose subtracts: no digits are multiplied.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --through split_integers --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @truncated(
// CHECK: linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x6xi8>) outs({{.*}} : tensor<4x6xi32>)
// CHECK-NOT: linalg.matmul
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK-NOT: i64
func.func @truncated(%a: tensor<4x8xi8>, %b: tensor<8x6xi8>) -> tensor<4x6xi8> {
  %zeros = arith.constant dense<0> : tensor<4x6xi64>
  %sums = linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x6xi8>) outs(%zeros : tensor<4x6xi64>) -> tensor<4x6xi64>
  %y = arith.trunci %sums : tensor<4x6xi64> to tensor<4x6xi8>
  return %y : tensor<4x6xi8>
}

// -----

// CHECK-LABEL: func.func @read_whole(
// CHECK: arith.extsi {{.*}} : i32 to i64
// CHECK: arith.trunci {{.*}} : i64 to i32
func.func @read_whole(%a: tensor<4x8xi8>, %b: tensor<8x6xi8>) -> (tensor<4x6xi32>, tensor<4x6xi64>) {
  %zeros = arith.constant dense<0> : tensor<4x6xi64>
  %sums = linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x6xi8>) outs(%zeros : tensor<4x6xi64>) -> tensor<4x6xi64>
  %e = tensor.empty() : tensor<4x6xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%sums : tensor<4x6xi64>) outs(%e : tensor<4x6xi32>) {
  ^bb0(%x: i64, %out: i32):
    %t = arith.trunci %x : i64 to i32
    linalg.yield %t : i32
  } -> tensor<4x6xi32>
  return %y, %sums : tensor<4x6xi32>, tensor<4x6xi64>
}

// -----

// CHECK-LABEL: func.func @less_zero_points(
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins({{.*}}, %x, {{.*}}, %y : tensor<4x8xi32>, tensor<i32>, tensor<6x8xi32>, tensor<6xi32>)
// CHECK: arith.subi
// CHECK: arith.subi
// CHECK: arith.muli
// CHECK-NOT: linalg.generic
// CHECK: return
#map = affine_map<(i, j) -> (i, j)>
func.func @less_zero_points(%a: tensor<4x8xi8>, %b: tensor<6x8xi8>, %x: tensor<i32>, %y: tensor<6xi32>)
    -> tensor<4x6xi32> {
  %wide_a = arith.extsi %a : tensor<4x8xi8> to tensor<4x8xi32>
  %0 = tensor.empty() : tensor<4x8xi32>
  %less_x = linalg.generic {indexing_maps = [#map, affine_map<(i, j) -> ()>, #map],
      iterator_types = ["parallel", "parallel"]}
      ins(%wide_a, %x : tensor<4x8xi32>, tensor<i32>) outs(%0 : tensor<4x8xi32>) {
  ^bb0(%number: i32, %zero: i32, %out: i32):
    %d = arith.subi %number, %zero : i32
    linalg.yield %d : i32
  } -> tensor<4x8xi32>
  %wide_b = arith.extsi %b : tensor<6x8xi8> to tensor<6x8xi32>
  %1 = tensor.empty() : tensor<6x8xi32>
  %less_y = linalg.generic {indexing_maps = [#map, affine_map<(i, j) -> (i)>, #map],
      iterator_types = ["parallel", "parallel"]}
      ins(%wide_b, %y : tensor<6x8xi32>, tensor<6xi32>) outs(%1 : tensor<6x8xi32>) {
  ^bb0(%number: i32, %zero: i32, %out: i32):
    %d = arith.subi %number, %zero : i32
    linalg.yield %d : i32
  } -> tensor<6x8xi32>
  %2 = tensor.empty() : tensor<8x6xi32>
  %columns = linalg.transpose ins(%less_y : tensor<6x8xi32>) outs(%2 : tensor<8x6xi32>) permutation = [1, 0]
  %zeros = arith.constant dense<0> : tensor<4x6xi64>
  %sums = linalg.matmul ins(%less_x, %columns : tensor<4x8xi32>, tensor<8x6xi32>) outs(%zeros : tensor<4x6xi64>)
    -> tensor<4x6xi64>
  %c = arith.trunci %sums : tensor<4x6xi64> to tensor<4x6xi32>
  return %c : tensor<4x6xi32>
}
