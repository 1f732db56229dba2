// Matmuls of the same types and layouts that do not depend on each other come together; others stay what they are.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --set groups=true --step group_matmuls \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @layers(
// CHECK: [[h0:%.+]] = call @layers_matmul_0(%x, %w)
// CHECK-NEXT: [[h1:%.+]] = call @layers_matmul_2(%y, %w)
// CHECK-NEXT: [[e:%.+]] = call @layers_elementwise_0([[h0]])
// CHECK-NEXT: [[y0:%.+]] = call @layers_matmul_1([[e]], %w)
// CHECK-NEXT: [[y1:%.+]] = call @layers_matmul_3([[h1]], %w)
// CHECK-NEXT: return [[y0]], [[y1]]
// CHECK: func.func private @layers_matmul_0({{.*}}) -> tensor<4x16xf16> attributes {group = 0 : i64}
// CHECK: func.func private @layers_matmul_1({{.*}}) -> tensor<4x16xf16> attributes {group = 1 : i64}
// CHECK: func.func private @layers_matmul_2({{.*}}) -> tensor<8x16xf16> attributes {group = 0 : i64}
// CHECK: func.func private @layers_matmul_3({{.*}}) -> tensor<8x16xf16> attributes {group = 1 : i64}
func.func @layers(%x: tensor<4x16xf16>, %y: tensor<8x16xf16>, %w: tensor<16x16xf16>)
    -> (tensor<4x16xf16>, tensor<8x16xf16>) {
  %h0 = call @layers_matmul_0(%x, %w) : (tensor<4x16xf16>, tensor<16x16xf16>) -> tensor<4x16xf16>
  %e = call @layers_elementwise_0(%h0) : (tensor<4x16xf16>) -> tensor<4x16xf16>
  %y0 = call @layers_matmul_1(%e, %w) : (tensor<4x16xf16>, tensor<16x16xf16>) -> tensor<4x16xf16>
  %h1 = call @layers_matmul_2(%y, %w) : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf16>
  %y1 = call @layers_matmul_3(%h1, %w) : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf16>
  return %y0, %y1 : tensor<4x16xf16>, tensor<8x16xf16>
}
func.func private @layers_matmul_0(%a: tensor<4x16xf16>, %b: tensor<16x16xf16>) -> tensor<4x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4x16xf16>) -> tensor<4x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<4x16xf16>) -> tensor<4x16xf16>
  return %2 : tensor<4x16xf16>
}
func.func private @layers_matmul_1(%a: tensor<4x16xf16>, %b: tensor<16x16xf16>) -> tensor<4x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4x16xf16>) -> tensor<4x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<4x16xf16>) -> tensor<4x16xf16>
  return %2 : tensor<4x16xf16>
}
func.func private @layers_matmul_2(%a: tensor<8x16xf16>, %b: tensor<16x16xf16>) -> tensor<8x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<8x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<8x16xf16>) -> tensor<8x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<8x16xf16>) -> tensor<8x16xf16>
  return %2 : tensor<8x16xf16>
}
func.func private @layers_matmul_3(%a: tensor<8x16xf16>, %b: tensor<16x16xf16>) -> tensor<8x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<8x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<8x16xf16>) -> tensor<8x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<8x16xf16>) -> tensor<8x16xf16>
  return %2 : tensor<8x16xf16>
}
func.func private @layers_elementwise_0(%a: tensor<4x16xf16>) -> tensor<4x16xf16> {
  %0 = tensor.empty() : tensor<4x16xf16>
  %1 = linalg.exp ins(%a : tensor<4x16xf16>) outs(%0 : tensor<4x16xf16>) -> tensor<4x16xf16>
  return %1 : tensor<4x16xf16>
}

// -----

// A matmul alone is in no group, nor is a batch.
//
// CHECK-LABEL: func.func private @alone_matmul_0(
// CHECK-NOT: group
func.func @alone(%x: tensor<4x16xf16>, %y: tensor<2x4x16xf16>, %w: tensor<16x16xf16>, %v: tensor<2x16x16xf16>)
    -> (tensor<4x16xf16>, tensor<2x4x16xf16>) {
  %h = call @alone_matmul_0(%x, %w) : (tensor<4x16xf16>, tensor<16x16xf16>) -> tensor<4x16xf16>
  %g = call @alone_matmul_1(%y, %v) : (tensor<2x4x16xf16>, tensor<2x16x16xf16>) -> tensor<2x4x16xf16>
  return %h, %g : tensor<4x16xf16>, tensor<2x4x16xf16>
}
func.func private @alone_matmul_0(%a: tensor<4x16xf16>, %b: tensor<16x16xf16>) -> tensor<4x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4x16xf16>) -> tensor<4x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<4x16xf16>) -> tensor<4x16xf16>
  return %2 : tensor<4x16xf16>
}
func.func private @alone_matmul_1(%a: tensor<2x4x16xf16>, %b: tensor<2x16x16xf16>) -> tensor<2x4x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<2x4x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<2x4x16xf16>) -> tensor<2x4x16xf16>
  %2 = linalg.batch_matmul ins(%a, %b : tensor<2x4x16xf16>, tensor<2x16x16xf16>) outs(%1 : tensor<2x4x16xf16>)
    -> tensor<2x4x16xf16>
  return %2 : tensor<2x4x16xf16>
}

// -----

// Nor is a contraction whose kernel has no matrix units.
//
// CHECK-LABEL: func.func private @sums_matmul_0(
// CHECK-NOT: group
func.func @sums(%x: tensor<4x16xf16>, %w: tensor<16x16xf16>) -> (tensor<4x16xf16>, tensor<4x16xf16>) {
  %h = call @sums_matmul_0(%x, %w) : (tensor<4x16xf16>, tensor<16x16xf16>) -> tensor<4x16xf16>
  %g = call @sums_elementwise_0(%x, %w) : (tensor<4x16xf16>, tensor<16x16xf16>) -> tensor<4x16xf16>
  return %h, %g : tensor<4x16xf16>, tensor<4x16xf16>
}
func.func private @sums_matmul_0(%a: tensor<4x16xf16>, %b: tensor<16x16xf16>) -> tensor<4x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4x16xf16>) -> tensor<4x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<4x16xf16>) -> tensor<4x16xf16>
  return %2 : tensor<4x16xf16>
}
func.func private @sums_elementwise_0(%a: tensor<4x16xf16>, %b: tensor<16x16xf16>) -> tensor<4x16xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<4x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<4x16xf16>) -> tensor<4x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<4x16xf16>) -> tensor<4x16xf16>
  return %2 : tensor<4x16xf16>
}
