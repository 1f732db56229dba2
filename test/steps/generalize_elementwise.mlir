// Elementwise ops, reductions and transposes become generic; a matmul and a fill keep their names.
//
// RUN: %stepladder-opt %s --pipeline %inputs/steps/generalize_ops.mlir --from generalize | FileCheck %s

// CHECK-LABEL: func.func @chain(
// CHECK: linalg.fill
// CHECK: linalg.matmul
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK: arith.maximumf
// CHECK-NOT: linalg.{{exp|transpose|reduce}}
func.func @chain(%a: tensor<4x8xf16>, %b: tensor<8x6xf16>, %row: tensor<6xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x6xf16>) outs(%zeros : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = linalg.exp ins(%c : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%e : tensor<4x6xf32>) outs(%1 : tensor<6x4xf32>) permutation = [1, 0]
  %r = linalg.reduce { arith.maximumf } ins(%t : tensor<6x4xf32>) outs(%row : tensor<6xf32>) dimensions = [1]
  return %r : tensor<6xf32>
}
