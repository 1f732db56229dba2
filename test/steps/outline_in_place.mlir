// An elementwise op that makes a result in the memory of an argument is a function of its own, whose argument is marked.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step outline_in_place --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#one = affine_map<(i, j) -> (0)>

// CHECK-LABEL: func.func @written(
// CHECK: [[new:%.+]] = call @written_elementwise_0(%row, %place, %cache)
// CHECK: linalg.generic {{.*}} ins([[new]] :
// CHECK: return {{.*}}, [[new]]
// CHECK: func.func private @written_elementwise_0(
// CHECK-SAME: %arg2: tensor<8x4xf32> {bufferization.writable = false, tf.aliasing_output = 0 : i32})
// CHECK: arith.select
func.func @written(%cache: tensor<8x4xf32> {tf.aliasing_output = 1 : i32}, %row: tensor<4xf32>, %place: tensor<1xi64>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = tensor.empty() : tensor<8x4xf32>
  %new = linalg.generic {indexing_maps = [#row, #one, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%row, %place, %cache : tensor<4xf32>, tensor<1xi64>, tensor<8x4xf32>) outs(%0 : tensor<8x4xf32>) {
  ^bb0(%n: f32, %p: i64, %old: f32, %out: f32):
    %i = linalg.index 0 : index
    %at = arith.index_cast %i : index to i64
    %is = arith.cmpi eq, %at, %p : i64
    %v = arith.select %is, %n, %old : f32
    linalg.yield %v : f32
  } -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%new : tensor<8x4xf32>) outs(%0 : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<8x4xf32>
  return %y, %new : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// Results in memory of their own: of other elements of the argument, of none that an op makes, and of an argument that
// another op reads too.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT: tf.aliasing_output
// CHECK-NOT: call @
// CHECK: return
func.func @apart(%x: tensor<4x4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4x4xf32> {tf.aliasing_output = 1 : i32},
                 %z: tensor<4x4xf32> {tf.aliasing_output = 2 : i32})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = tensor.empty() : tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  %2 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%z : tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %1, %y, %2, %z : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A stage that writes a part of an argument already is marked.
//
// CHECK-LABEL: func.func @assembled(
// CHECK-SAME: %whole: tensor<8x16xf16> {tf.aliasing_output = 0 : i32}
// CHECK: [[new:%.+]] = call @parts(%whole, %part)
// CHECK: return [[new]]
// CHECK: func.func private @parts(tensor<8x16xf16> {tf.aliasing_output = 0 : i32}
func.func @assembled(%whole: tensor<8x16xf16> {tf.aliasing_output = 0 : i32}, %part: tensor<8x8xf16>)
    -> tensor<8x16xf16> {
  %0 = call @parts(%whole, %part) : (tensor<8x16xf16>, tensor<8x8xf16>) -> tensor<8x16xf16>
  return %0 : tensor<8x16xf16>
}
func.func private @parts(tensor<8x16xf16> {tf.aliasing_output = 0 : i32}, tensor<8x8xf16>) -> tensor<8x16xf16>
    attributes {assembles = array<i64: 0>, extents = [array<i64: 8, 8>]}

// -----

// expected-error@+1 {{tc.outline_in_place: argument 0 is not the only one that gives its memory to result 0}}
func.func @twice(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32> {tf.aliasing_output = 0 : i32})
    -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %z = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
