// Both ops that read extended elements extend them, and no kernel writes the wide ones. What rounds stays an op.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step fuse_elementwise --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @deviations(
// CHECK: [[rounded:%.+]] = linalg.generic {{.*}} ins(%x : tensor<4x8xf32>)
// CHECK: arith.truncf
// CHECK: [[sums:%.+]] = linalg.generic {{.*}} ins([[rounded]] : tensor<4x8xf16>)
// CHECK: arith.extf {{.*}} : f16 to f64
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins([[rounded]], [[sums]] : tensor<4x8xf16>, tensor<4xf64>)
// CHECK: arith.extf {{.*}} : f16 to f64
// CHECK: arith.subf
// CHECK-NOT: linalg.generic
// CHECK: return
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @deviations(%x: tensor<4x8xf32>) -> (tensor<4x8xf64>, tensor<4x8xf16>) attributes {has_stages} {
  %zero = arith.constant 0.0 : f64
  %0 = tensor.empty() : tensor<4x8xf16>
  %1 = tensor.empty() : tensor<4x8xf64>
  %2 = tensor.empty() : tensor<4xf64>
  %rounded = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%0 : tensor<4x8xf16>) {
  ^bb0(%in: f32, %out: f16):
    %v = arith.truncf %in : f32 to f16
    linalg.yield %v : f16
  } -> tensor<4x8xf16>
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%rounded : tensor<4x8xf16>) outs(%1 : tensor<4x8xf64>) {
  ^bb0(%in: f16, %out: f64):
    %v = arith.extf %in : f16 to f64
    linalg.yield %v : f64
  } -> tensor<4x8xf64>
  %none = linalg.fill ins(%zero : f64) outs(%2 : tensor<4xf64>) -> tensor<4xf64>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%wide : tensor<4x8xf64>) outs(%none : tensor<4xf64>) {
  ^bb0(%in: f64, %out: f64):
    %v = arith.addf %in, %out : f64
    linalg.yield %v : f64
  } -> tensor<4xf64>
  %less = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%wide, %sums : tensor<4x8xf64>, tensor<4xf64>) outs(%1 : tensor<4x8xf64>) {
  ^bb0(%in: f64, %sum: f64, %out: f64):
    %v = arith.subf %in, %sum : f64
    linalg.yield %v : f64
  } -> tensor<4x8xf64>
  return %less, %rounded : tensor<4x8xf64>, tensor<4x8xf16>
}
