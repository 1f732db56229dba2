// Operands of products of two floating-point types are extended to the narrowest type that has the numbers of both.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step widen_operands --split-input-file \
// RUN:   | FileCheck %s
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step widen_operands --split-input-file \
// RUN:   --set mixed_fp8=false | FileCheck %s --check-prefix=FP8
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step widen_operands --split-input-file \
// RUN:   --set multiplies_fp8=false | FileCheck %s --check-prefix=NO-FP8
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step widen_operands --split-input-file \
// RUN:   --set multiplies_bf16=false | FileCheck %s --check-prefix=NO-BF16

// The wider type is that of B: A is extended, and the body multiplies its elements as they are.
//
// CHECK-LABEL: func.func @to_the_wider(
// CHECK: %[[E:.+]] = tensor.empty() : tensor<8x16xf32>
// CHECK: %[[W:.+]] = linalg.generic {{.*}} ins(%a : tensor<8x16xf16>) outs(%[[E]] : tensor<8x16xf32>)
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK-NOT: fits_tf32
// CHECK: %[[P:.+]] = linalg.generic {{.*}} ins(%[[W]], %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros
// CHECK-NEXT: ^bb0([[X:%.+]]: f32, [[Y:%.+]]: f32, [[S:%.+]]: f32):
// CHECK-NEXT: [[XY:%.+]] = arith.mulf [[X]], [[Y]] : f32
// CHECK-NEXT: [[N:%.+]] = arith.addf [[S]], [[XY]] : f32
// CHECK-NEXT: linalg.yield [[N]]
// CHECK: return %[[P]]
func.func @to_the_wider(%a: tensor<8x16xf16>, %b: tensor<16x32xf32>, %zeros: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// Neither f16 nor bf16 has the numbers of the other: both become f32, of which tf32 keeps all their bits.
//
// CHECK-LABEL: func.func @to_another(
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>) attrs = {fits_tf32}
func.func @to_another(%a: tensor<8x16xf16>, %b: tensor<16x32xbf16>, %zeros: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xbf16>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>

// What the payload extends fits too, through layouts; numbers that are computed in f32 may not.
//
// CHECK-LABEL: func.func @extended_before(
// CHECK: linalg.matmul {fits_tf32} ins(%{{.+}}, %{{.+}} : tensor<8x16xf32>, tensor<16x32xf32>)
// CHECK: linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<8x16xf32>, tensor<16x32xf32>)
func.func @extended_before(%a: tensor<8x16xf16>, %b: tensor<32x16xbf16>, %zeros: tensor<8x32xf32>)
    -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %f = tensor.empty() : tensor<32x16xf32>
  %t = tensor.empty() : tensor<16x32xf32>
  %x = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<8x16xf16>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  %w = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
    ins(%b : tensor<32x16xbf16>) outs(%f : tensor<32x16xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x16xf32>
  %y = linalg.transpose ins(%w : tensor<32x16xf32>) outs(%t : tensor<16x32xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%x, %y : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %z = linalg.add ins(%x, %x : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = linalg.matmul ins(%z, %y : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r, %s : tensor<8x32xf32>, tensor<8x32xf32>
}

// -----

// The body extends to f32 what the op extends to f16.
//
// CHECK-LABEL: func.func @within_the_body(
// CHECK: arith.extf %{{.*}} : f8E4M3FN to f16
// CHECK: ins(%a, %{{.*}} : tensor<8x16xf16>, tensor<16x32xf16>)
// CHECK-NEXT: ^bb0([[X:%.+]]: f16, [[Y:%.+]]: f16, {{%.+}}: f32):
// CHECK-NEXT: [[XW:%.+]] = arith.extf [[X]] : f16 to f32
// CHECK-NEXT: [[YW:%.+]] = arith.extf [[Y]] : f16 to f32
// CHECK-NEXT: arith.mulf [[XW]], [[YW]] : f32
func.func @within_the_body(%a: tensor<8x16xf16>, %b: tensor<16x32xf8E4M3FN>, %zeros: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf8E4M3FN>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// wgmma multiplies both kinds of fp8; for other pipelines they become f16.
//
// CHECK-LABEL: func.func @both_kinds_of_fp8(
// CHECK-NEXT: linalg.matmul
// FP8-LABEL: func.func @both_kinds_of_fp8(
// FP8: arith.extf %{{.*}} : f8E4M3FN to f16
// FP8: arith.extf %{{.*}} : f8E5M2 to f16
// FP8: ins(%{{.*}}, %{{.*}} : tensor<8x16xf16>, tensor<16x32xf16>)
func.func @both_kinds_of_fp8(%a: tensor<8x16xf8E4M3FN>, %b: tensor<16x32xf8E5M2>, %zeros: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E5M2>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// Without products of fp8, those of one kind become products of f16, which kernels in front make; also what the payload
// has extended, which is extended further where it was to f32.
//
// CHECK-LABEL: func.func @one_kind_of_fp8(
// CHECK-NEXT: linalg.matmul ins(%a, %b
// CHECK-NOT: prepared
// NO-FP8-LABEL: func.func @one_kind_of_fp8(
// NO-FP8: %[[A:.+]] = linalg.generic {{.*}} ins(%a : tensor<8x16xf8E5M2>) {{.*}} attrs = {prepared}
// NO-FP8: arith.extf %{{.*}} : f8E5M2 to f16
// NO-FP8: %[[B:.+]] = linalg.generic {{.*}} ins(%b : tensor<16x32xf8E5M2>) {{.*}} attrs = {prepared}
// NO-FP8: linalg.generic {{.*}} ins(%[[A]], %[[B]] : tensor<8x16xf16>, tensor<16x32xf16>)
// NO-FP8: %[[H:.+]] = linalg.generic {{.*}} ins(%a : tensor<8x16xf8E5M2>) {{.*}} attrs = {prepared}
// NO-FP8: %[[W:.+]] = linalg.generic {{.*}} ins(%[[H]] : tensor<8x16xf16>)
// NO-FP8: arith.extf %{{.*}} : f16 to f32
// NO-FP8: linalg.matmul {fits_tf32} ins(%[[W]],
func.func @one_kind_of_fp8(%a: tensor<8x16xf8E5M2>, %b: tensor<16x32xf8E5M2>, %zeros: tensor<8x32xf32>)
    -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf8E5M2>, tensor<16x32xf8E5M2>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %e = tensor.empty() : tensor<8x16xf32>
  %f = tensor.empty() : tensor<16x32xf32>
  %x = linalg.copy ins(%a : tensor<8x16xf8E5M2>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.copy ins(%b : tensor<16x32xf8E5M2>) outs(%f : tensor<16x32xf32>) -> tensor<16x32xf32>
  %s = linalg.matmul ins(%x, %y : tensor<8x16xf32>, tensor<16x32xf32>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r, %s : tensor<8x32xf32>, tensor<8x32xf32>
}

// -----

// Sums of f16 are none of products of fp8, and sums of f64 those of products of f64.
//
// CHECK-LABEL: func.func @by_sums(
// CHECK: linalg.generic {{.*}} ins(%a : tensor<8x16xf8E5M2>) {{.*}} attrs = {prepared}
// CHECK: linalg.generic {{.*}} ins(%b : tensor<16x32xf8E5M2>) {{.*}} attrs = {prepared}
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<8x16xf16>, tensor<16x32xf16>) outs(%halves
// CHECK: arith.extf %{{.*}} : f16 to f64
// CHECK: arith.extf %{{.*}} : f16 to f64
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<8x16xf64>, tensor<16x32xf64>) outs(%doubles
func.func @by_sums(%a: tensor<8x16xf8E5M2>, %b: tensor<16x32xf8E5M2>, %x: tensor<8x16xf16>, %y: tensor<16x32xf16>,
    %halves: tensor<8x32xf16>, %doubles: tensor<8x32xf64>) -> (tensor<8x32xf16>, tensor<8x32xf64>) {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf8E5M2>, tensor<16x32xf8E5M2>) outs(%halves : tensor<8x32xf16>) -> tensor<8x32xf16>
  %s = linalg.matmul ins(%x, %y : tensor<8x16xf16>, tensor<16x32xf16>) outs(%doubles : tensor<8x32xf64>) -> tensor<8x32xf64>
  return %r, %s : tensor<8x32xf16>, tensor<8x32xf64>
}

// -----

// An operand that the body rounds to the type of the sums is rounded before.
//
// CHECK-LABEL: func.func @to_the_sums(
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: linalg.generic {{.*}} ins(%a, %{{.+}} : tensor<8x16xf16>, tensor<16x32xf16>) outs(%halves
// CHECK-NEXT: ^bb0([[X:%.+]]: f16, [[Y:%.+]]: f16, {{%.+}}: f16):
// CHECK-NEXT: arith.mulf [[X]], [[Y]] : f16
func.func @to_the_sums(%a: tensor<8x16xf16>, %b: tensor<16x32xf32>, %halves: tensor<8x32xf16>) -> tensor<8x32xf16> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf32>) outs(%halves : tensor<8x32xf16>) -> tensor<8x32xf16>
  return %r : tensor<8x32xf16>
}

// -----

// Where no kernel multiplies bf16, fp8 that the payload extends to it becomes f16.
//
// CHECK-LABEL: func.func @as_bf16(
// CHECK: linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<8x16xbf16>, tensor<16x32xbf16>)
// NO-BF16-LABEL: func.func @as_bf16(
// NO-BF16-COUNT-2: arith.truncf %{{.*}} : f32 to f16
// NO-BF16: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros
func.func @as_bf16(%a: tensor<8x16xf8E5M2>, %b: tensor<16x32xf8E5M2>, %zeros: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = tensor.empty() : tensor<8x16xbf16>
  %1 = tensor.empty() : tensor<16x32xbf16>
  %x = linalg.map { arith.extf } ins(%a : tensor<8x16xf8E5M2>) outs(%0 : tensor<8x16xbf16>)
  %y = linalg.map { arith.extf } ins(%b : tensor<16x32xf8E5M2>) outs(%1 : tensor<16x32xbf16>)
  %r = linalg.matmul ins(%x, %y : tensor<8x16xbf16>, tensor<16x32xbf16>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// Products of one type and of integers stay.
//
// CHECK-LABEL: func.func @others(
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: return
func.func @others(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>, %i: tensor<8x16xi8>, %j: tensor<16x32xi16>,
    %zeros: tensor<8x32xf32>, %sums: tensor<8x32xi32>) -> (tensor<8x32xf32>, tensor<8x32xi32>) {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf16>) outs(%zeros : tensor<8x32xf32>) -> tensor<8x32xf32>
  %s = linalg.matmul ins(%i, %j : tensor<8x16xi8>, tensor<16x32xi16>) outs(%sums : tensor<8x32xi32>) -> tensor<8x32xi32>
  return %r, %s : tensor<8x32xf32>, tensor<8x32xi32>
}
