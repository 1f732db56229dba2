// Results become arguments that are written last: those of callees buffers of the caller, and those of the caller its own
// arguments, without copies. An accumulator that begins from an argument has a buffer of its own.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step bufferize_function --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @two(%x: memref<4x8xf32>, %{{.*}}: memref<4x8xf32>)
// CHECK: [[h:%.+]] = memref.alloc() : memref<4x8xf32>
// CHECK: call @first(%x, [[h]])
// CHECK: call @second([[h]], %x, %arg1)
// CHECK-NOT: memref.copy
// CHECK: return
// CHECK: func.func private @second(%h: memref<4x8xf32>, %x: memref<4x8xf32>, [[out:%.+]]: memref<4x8xf32>)
// CHECK: memref.copy %x, [[out]]
// CHECK: linalg.generic {{.*}} ins(%h : memref<4x8xf32>) outs([[out]] : memref<4x8xf32>)
#map = affine_map<(i, j) -> (i, j)>
func.func @two(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %h = call @first(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = call @second(%h, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @first(%x: tensor<4x8xf32> {bufferization.writable = false}) -> tensor<4x8xf32> {
  %0 = tensor.empty() : tensor<4x8xf32>
  %e = linalg.exp ins(%x : tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}
func.func private @second(%h: tensor<4x8xf32> {bufferization.writable = false},
    %x: tensor<4x8xf32> {bufferization.writable = false}) -> tensor<4x8xf32> {
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<4x8xf32>) outs(%x : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A part of an argument is a view, and no copy: the stage that takes it has a layout for any offset.
//
// CHECK-LABEL: func.func @layer(%x: memref<4x8xf32>, %w: memref<3x4x8xf32>, %{{.*}}: memref<4x8xf32>)
// CHECK: [[part:%.+]] = memref.subview %w[2, 0, 0] [1, 4, 8] [1, 1, 1]
// CHECK: [[any:%.+]] = memref.cast [[part]] : memref<4x8xf32, strided<[8, 1], offset: 64>>
// CHECK: call @add(%x, [[any]], %arg2)
// CHECK-NOT: memref.copy
func.func @layer(%x: tensor<4x8xf32>, %w: tensor<3x4x8xf32>) -> tensor<4x8xf32> {
  %part = tensor.extract_slice %w[2, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
  %y = call @add(%x, %part) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @add(%x: tensor<4x8xf32> {bufferization.writable = false}, %w: tensor<4x8xf32>
    {bufferization.writable = false, bufferization.buffer_layout = strided<[8, 1], offset: ?>}) -> tensor<4x8xf32> {
  %0 = tensor.empty() : tensor<4x8xf32>
  %y = linalg.add ins(%x, %w : tensor<4x8xf32>, tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
