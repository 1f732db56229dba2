// What a matmul starts from is part of its kernel, where an elementwise op computes it for the matmul alone. One that
// something else reads is a kernel of its own.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step outline_matmuls --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @scaled(
// CHECK-NOT: linalg.generic
// CHECK: call @scaled_matmul_0(%a, %b, %c
// CHECK-LABEL: func.func private @scaled_matmul_0(
// CHECK: [[product:%.+]] = linalg.matmul
// CHECK: linalg.generic {{.*}} ins([[product]], {{.*}} : tensor<16x24xf32>, tensor<16x24xf32>)
// CHECK-NEXT: ^bb0([[sum:%.+]]: f32, [[element:%.+]]: f32, {{.*}}: f32):
// CHECK-NEXT: [[scaled:%.+]] = arith.mulf [[element]], %{{.*}} : f32
// CHECK-NEXT: arith.addf [[sum]], [[scaled]] : f32
#same = affine_map<(i, j) -> (i, j)>
func.func @scaled(%a: tensor<16x32xf16>, %b: tensor<32x24xf16>, %c: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %half = arith.constant 0.5 : f32
  %start = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel", "parallel"]}
      outs(%c : tensor<16x24xf32>) {
  ^bb0(%x: f32):
    %v = arith.mulf %x, %half : f32
    linalg.yield %v : f32
  } -> tensor<16x24xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x24xf16>) outs(%start : tensor<16x24xf32>)
    -> tensor<16x24xf32>
  return %y : tensor<16x24xf32>
}

// -----

// CHECK-LABEL: func.func @read(
// CHECK: [[start:%.+]] = linalg.generic {{.*}} ins(%c
// CHECK: call @read_matmul_0(%a, %b, [[start]])
#same = affine_map<(i, j) -> (i, j)>
func.func @read(%a: tensor<16x32xf16>, %b: tensor<32x24xf16>, %c: tensor<16x24xf32>)
    -> (tensor<16x24xf32>, tensor<16x24xf32>) {
  %0 = tensor.empty() : tensor<16x24xf32>
  %start = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<16x24xf32>) outs(%0 : tensor<16x24xf32>) {
  ^bb0(%x: f32, %out: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<16x24xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x24xf16>) outs(%start : tensor<16x24xf32>)
    -> tensor<16x24xf32>
  return %y, %start : tensor<16x24xf32>, tensor<16x24xf32>
}
