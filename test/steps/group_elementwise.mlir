// Elementwise ops that follow each other come together by what they depend on; others stay what they are.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step group_elementwise \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// The first two and the last one do not depend on each other. The op behind the matmul is alone.
// CHECK-LABEL: func.func @step(
// CHECK-NEXT: [[q:%.+]] = call @step_elementwise_0(%x)
// CHECK-NEXT: [[k:%.+]] = call @step_elementwise_1(%y)
// CHECK-NEXT: [[v:%.+]] = call @step_elementwise_3(%x)
// CHECK-NEXT: [[w:%.+]] = call @step_elementwise_2([[k]])
// CHECK-NEXT: [[s:%.+]] = call @step_matmul_0([[q]], [[w]])
// CHECK-NEXT: [[r:%.+]] = call @step_elementwise_4([[s]])
// CHECK-NEXT: return [[r]], [[v]]
// CHECK: func.func private @step_elementwise_0({{.*}}) -> tensor<16x16xf16> attributes {group = 4 : i64}
// CHECK: func.func private @step_elementwise_1({{.*}}) -> tensor<16x16xf16> attributes {group = 4 : i64}
// CHECK: func.func private @step_elementwise_2({{.*}}) -> tensor<16x16xf16> {
// CHECK: func.func private @step_elementwise_3({{.*}}) -> tensor<16x16xf16> attributes {group = 4 : i64}
// CHECK: func.func private @step_elementwise_4({{.*}}) -> tensor<16x16xf16> {
// CHECK: func.func private @step_matmul_0({{.*}}) -> tensor<16x16xf16> attributes {group = 3 : i64}
func.func @step(%x: tensor<16x16xf16>, %y: tensor<16x16xf16>) -> (tensor<16x16xf16>, tensor<16x16xf16>) {
  %q = call @step_elementwise_0(%x) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  %k = call @step_elementwise_1(%y) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  %w = call @step_elementwise_2(%k) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  %v = call @step_elementwise_3(%x) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  %s = call @step_matmul_0(%q, %w) : (tensor<16x16xf16>, tensor<16x16xf16>) -> tensor<16x16xf16>
  %r = call @step_elementwise_4(%s) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  return %r, %v : tensor<16x16xf16>, tensor<16x16xf16>
}
func.func private @step_elementwise_0(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.exp ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}
func.func private @step_elementwise_1(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.exp ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}
func.func private @step_elementwise_2(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.abs ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}
func.func private @step_elementwise_3(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.negf ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}
func.func private @step_elementwise_4(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.exp ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}
func.func private @step_matmul_0(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>) -> tensor<16x16xf16>
    attributes {group = 3 : i64} {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %2 : tensor<16x16xf16>
}

// -----

// expected-error@+1 {{tc.group_elementwise: expected one public function of one block, found 2 public functions}}
module {
  func.func @one() {
    return
  }
  func.func @two() {
    return
  }
}

// -----

// Two ops are a group as well.
// CHECK-LABEL: func.func @two(
// CHECK: func.func private @two_elementwise_0({{.*}}) -> tensor<16x16xf16> attributes {group = [[group:.+]] : i64}
// CHECK: func.func private @two_elementwise_1({{.*}}) -> tensor<16x16xf16> attributes {group = [[group]] : i64}
func.func @two(%x: tensor<16x16xf16>) -> (tensor<16x16xf16>, tensor<16x16xf16>) {
  %p = call @two_elementwise_0(%x) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  %q = call @two_elementwise_1(%x) : (tensor<16x16xf16>) -> tensor<16x16xf16>
  return %p, %q : tensor<16x16xf16>, tensor<16x16xf16>
}
func.func private @two_elementwise_0(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.exp ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}
func.func private @two_elementwise_1(%a: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %0 = tensor.empty() : tensor<16x16xf16>
  %1 = linalg.negf ins(%a : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %1 : tensor<16x16xf16>
}

// -----

// A stage of one op that is not elementwise is in no group. The first group of a function has the number 0.
// CHECK-LABEL: func.func @reduced(
// CHECK: func.func private @reduced_elementwise_0({{.*}}) -> tensor<16xf16> attributes {group = 0 : i64}
// CHECK: func.func private @reduced_elementwise_1({{.*}}) -> tensor<16xf16> attributes {group = 0 : i64}
// CHECK: func.func private @reduced_rows_0({{.*}}) -> tensor<16xf16> {
func.func @reduced(%x: tensor<16xf16>, %y: tensor<16x16xf16>) -> (tensor<16xf16>, tensor<16xf16>, tensor<16xf16>) {
  %p = call @reduced_elementwise_0(%x) : (tensor<16xf16>) -> tensor<16xf16>
  %q = call @reduced_elementwise_1(%x) : (tensor<16xf16>) -> tensor<16xf16>
  %r = call @reduced_rows_0(%y, %x) : (tensor<16x16xf16>, tensor<16xf16>) -> tensor<16xf16>
  return %p, %q, %r : tensor<16xf16>, tensor<16xf16>, tensor<16xf16>
}
func.func private @reduced_elementwise_0(%a: tensor<16xf16>) -> tensor<16xf16> {
  %0 = tensor.empty() : tensor<16xf16>
  %1 = linalg.exp ins(%a : tensor<16xf16>) outs(%0 : tensor<16xf16>) -> tensor<16xf16>
  return %1 : tensor<16xf16>
}
func.func private @reduced_elementwise_1(%a: tensor<16xf16>) -> tensor<16xf16> {
  %0 = tensor.empty() : tensor<16xf16>
  %1 = linalg.negf ins(%a : tensor<16xf16>) outs(%0 : tensor<16xf16>) -> tensor<16xf16>
  return %1 : tensor<16xf16>
}
func.func private @reduced_rows_0(%a: tensor<16x16xf16>, %start: tensor<16xf16>) -> tensor<16xf16> {
  %1 = linalg.reduce ins(%a : tensor<16x16xf16>) outs(%start : tensor<16xf16>) dimensions = [1]
    (%in: f16, %sum: f16) {
      %s = arith.addf %in, %sum : f16
      linalg.yield %s : f16
    }
  return %1 : tensor<16xf16>
}
