// The elements of windows become a tensor in which neighbours of the result are neighbours: of images of pixels (NHWC)
// the channels are innermost, of images of channels (NCHW) the columns of the result. A pooling extracts the elements of
// its windows itself.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --through unroll_loops --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @pixels(
// CHECK: tensor.extract %x[{{.*}}] : tensor<2x9x11x16xf16>
// CHECK: -> tensor<2x7x9x3x3x16xf16>
// CHECK: linalg.generic {{.*}} ins({{.*}}, %w : tensor<2x7x9x3x3x16xf16>, tensor<3x3x16x32xf16>)
func.func @pixels(%x: tensor<2x9x11x16xf16>, %w: tensor<3x3x16x32xf16>, %y: tensor<2x7x9x32xf32>)
    -> tensor<2x7x9x32xf32> {
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<2x9x11x16xf16>, tensor<3x3x16x32xf16>) outs(%y : tensor<2x7x9x32xf32>) -> tensor<2x7x9x32xf32>
  return %r : tensor<2x7x9x32xf32>
}

// -----

// CHECK-LABEL: func.func @channels(
// CHECK: %[[row:.+]] = arith.addi {{.*}} : index
// CHECK: %[[column:.+]] = arith.addi {{.*}} : index
// CHECK: tensor.extract %x[%{{.+}}, %{{.+}}, %[[row]], %[[column]]] : tensor<2x16x9x11xf16>
// CHECK: -> tensor<2x16x3x3x7x9xf16>
// CHECK: linalg.generic {{.*}} ins({{.*}}, %w : tensor<2x16x3x3x7x9xf16>, tensor<32x16x3x3xf16>)
func.func @channels(%x: tensor<2x16x9x11xf16>, %w: tensor<32x16x3x3xf16>, %y: tensor<2x32x7x9xf32>)
    -> tensor<2x32x7x9xf32> {
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<2x16x9x11xf16>, tensor<32x16x3x3xf16>) outs(%y : tensor<2x32x7x9xf32>) -> tensor<2x32x7x9xf32>
  return %r : tensor<2x32x7x9xf32>
}

// -----

// CHECK-LABEL: func.func @pooled(
// CHECK: %[[window:.+]] = tensor.empty() : tensor<2x2xf16>
// CHECK: linalg.generic {{.*}} ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%[[window]] : tensor<2x2xf16>)
// CHECK: %[[element:.+]] = tensor.extract %x[
// CHECK: arith.maximumf %{{.+}}, %[[element]] : f16
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @pooled(%x: tensor<2x8x8x16xf16>, %y: tensor<2x4x4x16xf16>) -> tensor<2x4x4x16xf16> {
  %window = tensor.empty() : tensor<2x2xf16>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %window : tensor<2x8x8x16xf16>, tensor<2x2xf16>) outs(%y : tensor<2x4x4x16xf16>) -> tensor<2x4x4x16xf16>
  return %r : tensor<2x4x4x16xf16>
}

// -----

// A window that has a single place along an axis may be smaller than the axis.
//
// CHECK-LABEL: func.func @single_place(
// CHECK: tensor.extract %x[{{.*}}] : tensor<2x4x8x16xf16>
// CHECK: -> tensor<2x7x3x2x16xf16>
// CHECK: linalg.generic {{.*}} ins({{.*}}, %w : tensor<2x7x3x2x16xf16>, tensor<3x2x16x32xf16>)
func.func @single_place(%x: tensor<2x4x8x16xf16>, %w: tensor<3x2x16x32xf16>, %y: tensor<2x1x7x32xf32>)
    -> tensor<2x1x7x32xf32> {
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%x, %w : tensor<2x4x8x16xf16>, tensor<3x2x16x32xf16>) outs(%y : tensor<2x1x7x32xf32>) -> tensor<2x1x7x32xf32>
  return %r : tensor<2x1x7x32xf32>
}
