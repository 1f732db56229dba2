// Elementwise ops fuse with each other and with a reduction; the position of the maximum, which nothing reads, goes. The
// function of a matmul stays as it is.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step fuse_elementwise --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK: [[max:%.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-NOT: arith.select
// CHECK: linalg.generic {{.*}} ins(%arg0, [[max]]
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK-NOT: linalg.generic
// CHECK: func.func private @softmax_matmul_0(
// CHECK: linalg.exp
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @softmax(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {has_stages} {
  %none = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%none : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8xi64>
  %3 = linalg.fill ins(%first : i64) outs(%2 : tensor<8xi64>) -> tensor<8xi64>
  %max:2 = linalg.generic {indexing_maps = [#map, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%arg0 : tensor<8x16xf32>) outs(%1, %3 : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %m = arith.maximumf %in, %out : f32
    %above = arith.cmpf ogt, %in, %out : f32
    %p = arith.select %above, %n, %at : i64
    linalg.yield %m, %p : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  %4 = tensor.empty() : tensor<8x16xf32>
  %d = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %max#0 : tensor<8x16xf32>, tensor<8xf32>) outs(%4 : tensor<8x16xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %v = arith.subf %in, %m : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %e = linalg.exp ins(%d : tensor<8x16xf32>) outs(%4 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %e : tensor<8x16xf32>
}
func.func private @softmax_matmul_0(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = tensor.empty() : tensor<8x16xf32>
  %e = linalg.exp ins(%arg0 : tensor<8x16xf32>) outs(%0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %e : tensor<8x16xf32>
}
