// A linalg op takes the views of its operands along; an argument and a slice that are returned are copied. Other ops, and
// a value that is returned twice, are refused.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step outline_elementwise --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @views(%x: tensor<2x8xf32>)
// CHECK-DAG: [[sums:%.+]] = call @views_elementwise_0(%x) : (tensor<2x8xf32>) -> tensor<f32>
// CHECK-DAG: [[half:%.+]] = call @views_elementwise_1(%x) : (tensor<2x8xf32>) -> tensor<2x4xf32>
// CHECK-DAG: [[same:%.+]] = call @views_elementwise_2(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: return [[sums]], [[half]], [[same]]
// CHECK: func.func private @views_elementwise_0({{.*}}: tensor<2x8xf32> {bufferization.writable = false})
// CHECK: tensor.collapse_shape
// CHECK: linalg.generic
// CHECK: func.func private @views_elementwise_1(
// CHECK: tensor.extract_slice
// CHECK: linalg.copy
func.func @views(%x: tensor<2x8xf32>) -> (tensor<f32>, tensor<2x4xf32>, tensor<2x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<f32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<f32>) -> tensor<f32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%flat : tensor<16xf32>) outs(%1 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %half = tensor.extract_slice %x[0, 4] [2, 4] [1, 1] : tensor<2x8xf32> to tensor<2x4xf32>
  return %sum, %half, %x : tensor<f32>, tensor<2x4xf32>, tensor<2x8xf32>
}

// -----

// A matmul reads a copy of a slice.
//
// CHECK-LABEL: func.func @sliced(
// CHECK: [[copy:%.+]] = call @sliced_elementwise_0(%x)
// CHECK: call @sliced_matmul_0([[copy]])
// CHECK: func.func private @sliced_elementwise_0(
// CHECK: tensor.extract_slice
// CHECK: linalg.copy
func.func private @sliced_matmul_0(%x: tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @sliced(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %s = tensor.extract_slice %x[0, 4] [2, 4] [1, 1] : tensor<2x8xf32> to tensor<2x4xf32>
  %y = call @sliced_matmul_0(%s) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @joined(%x: tensor<2x8xf32>, %y: tensor<2x4xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{tc.outline_elementwise: 'tensor.insert_slice' between matmuls; accepted: linalg ops on tensors, reshapes, slices and constants}}
  %z = tensor.insert_slice %y into %x[0, 4] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<2x8xf32>
  %0 = tensor.empty() : tensor<2x8xf32>
  %e = linalg.exp ins(%z : tensor<2x8xf32>) outs(%0 : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %e : tensor<2x8xf32>
}

// -----

// Each result has a buffer of its own.
//
// CHECK-LABEL: func.func @twice(
// CHECK: [[first:%.+]] = call @twice_elementwise_0(%x)
// CHECK: [[second:%.+]] = call @twice_elementwise_1([[first]])
// CHECK: [[third:%.+]] = call @twice_elementwise_2(%x)
// CHECK: return [[first]], [[second]], [[third]]
func.func @twice(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = tensor.empty() : tensor<2x8xf32>
  %e = linalg.exp ins(%x : tensor<2x8xf32>) outs(%0 : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %e, %e, %x : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// A linalg op without results is what fusion left of one with an assertion.
//
// CHECK-LABEL: func.func @asserted(
// CHECK-NEXT: [[e:%.+]] = call @asserted_elementwise_0(%x)
// CHECK-NEXT: return [[e]]
func.func @asserted(%x: tensor<8xi64>) -> tensor<8xi64> {
  %n = arith.constant 4 : i64
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xi64>) {
  ^bb0(%in: i64):
    %holds = arith.cmpi slt, %in, %n : i64
    cf.assert %holds, "too large"
    linalg.yield
  }
  %0 = tensor.empty() : tensor<8xi64>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xi64>) outs(%0 : tensor<8xi64>) {
  ^bb0(%in: i64, %out: i64):
    %holds = arith.cmpi slt, %in, %n : i64
    cf.assert %holds, "too large"
    linalg.yield %in : i64
  } -> tensor<8xi64>
  return %y : tensor<8xi64>
}

// -----

// A fill that is returned is a kernel too.
//
// CHECK-LABEL: func.func @zeros(
// CHECK-NEXT: [[zeros:%.+]] = call @zeros_elementwise_0() : () -> tensor<8xf32>
// CHECK-NEXT: return [[zeros]]
// CHECK: func.func private @zeros_elementwise_0(
// CHECK: [[zero:%.+]] = arith.constant 0.0
// CHECK: linalg.generic
// CHECK: linalg.yield [[zero]]
func.func @zeros() -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %y = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// The columns of a part are apart in memory: a kernel copies it before they collapse. Whole rows are one after another,
// and the kernel is launched on them.
//
// CHECK-LABEL: func.func @parts(
// CHECK-NEXT: [[rows:%.+]] = tensor.extract_slice %x[1, 1, 0] [1, 7, 4] [1, 1, 1]
// CHECK-NEXT: [[copy:%.+]] = call @parts_elementwise_0(%x) : (tensor<2x8x4xf32>) -> tensor<2x7x4xf32>
// CHECK-NEXT: call @parts_elementwise_1([[copy]]) : (tensor<2x7x4xf32>) -> tensor<14x4xf32>
// CHECK-NEXT: call @parts_elementwise_2([[rows]]) : (tensor<7x4xf32>) -> tensor<28xf32>
func.func @parts(%x: tensor<2x8x4xf32>) -> (tensor<14x4xf32>, tensor<28xf32>) {
  %part = tensor.extract_slice %x[0, 1, 0] [2, 7, 4] [1, 1, 1] : tensor<2x8x4xf32> to tensor<2x7x4xf32>
  %flat = tensor.collapse_shape %part [[0, 1], [2]] : tensor<2x7x4xf32> into tensor<14x4xf32>
  %unused = tensor.collapse_shape %part [[0], [1, 2]] : tensor<2x7x4xf32> into tensor<2x28xf32>
  %0 = tensor.empty() : tensor<14x4xf32>
  %e = linalg.exp ins(%flat : tensor<14x4xf32>) outs(%0 : tensor<14x4xf32>) -> tensor<14x4xf32>
  %rows = tensor.extract_slice %x[1, 1, 0] [1, 7, 4] [1, 1, 1] : tensor<2x8x4xf32> to tensor<7x4xf32>
  %whole = tensor.collapse_shape %rows [[0, 1]] : tensor<7x4xf32> into tensor<28xf32>
  %1 = tensor.empty() : tensor<28xf32>
  %f = linalg.exp ins(%whole : tensor<28xf32>) outs(%1 : tensor<28xf32>) -> tensor<28xf32>
  return %e, %f : tensor<14x4xf32>, tensor<28xf32>
}

// -----

// A matmul reads the weights of a layer where they are, if they begin at a multiple of 16 bytes. Otherwise kernels copy
// them, which are launched on the weights, and so are equal.
//
// CHECK: func.func private @layers_matmul_0(tensor<4x4xf16> {bufferization.buffer_layout = strided<[4, 1], offset: ?>})
// CHECK-LABEL: func.func @layers(
// CHECK-DAG: [[second:%.+]] = tensor.extract_slice %w[1, 0, 0] [1, 4, 4] [1, 1, 1]
// CHECK-DAG: [[flat:%.+]] = tensor.collapse_shape [[second]] {{\[}}[0, 1], [2]]
// CHECK-DAG: [[odd:%.+]] = tensor.extract_slice %v[1, 0, 0] [1, 3, 3] [1, 1, 1]
// CHECK-DAG: [[last:%.+]] = tensor.extract_slice %v[2, 0, 0] [1, 3, 3] [1, 1, 1]
// CHECK: call @layers_matmul_0([[flat]])
// CHECK-DAG: [[copy:%.+]] = call @layers_elementwise_0([[odd]]) : (tensor<3x3xf16>) -> tensor<3x3xf16>
// CHECK-DAG: [[other:%.+]] = call @layers_elementwise_1([[last]]) : (tensor<3x3xf16>) -> tensor<3x3xf16>
// CHECK-DAG: call @layers_matmul_1([[copy]])
// CHECK-DAG: call @layers_matmul_2([[other]])
// CHECK: func.func private @layers_elementwise_0({{.*}}: tensor<3x3xf16> {
// CHECK-SAME: bufferization.buffer_layout = strided<[3, 1], offset: ?>
func.func private @layers_matmul_0(tensor<4x4xf16>) -> tensor<4x4xf16>
func.func private @layers_matmul_1(tensor<3x3xf16>) -> tensor<3x3xf16>
func.func private @layers_matmul_2(tensor<3x3xf16>) -> tensor<3x3xf16>
func.func @layers(%w: tensor<2x4x4xf16>, %v: tensor<3x3x3xf16>)
    -> (tensor<4x4xf16>, tensor<3x3xf16>, tensor<3x3xf16>) {
  %second = tensor.extract_slice %w[1, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<2x4x4xf16> to tensor<1x4x4xf16>
  %flat = tensor.collapse_shape %second [[0, 1], [2]] : tensor<1x4x4xf16> into tensor<4x4xf16>
  %x = call @layers_matmul_0(%flat) : (tensor<4x4xf16>) -> tensor<4x4xf16>
  %odd = tensor.extract_slice %v[1, 0, 0] [1, 3, 3] [1, 1, 1] : tensor<3x3x3xf16> to tensor<3x3xf16>
  %y = call @layers_matmul_1(%odd) : (tensor<3x3xf16>) -> tensor<3x3xf16>
  %last = tensor.extract_slice %v[2, 0, 0] [1, 3, 3] [1, 1, 1] : tensor<3x3x3xf16> to tensor<3x3xf16>
  %z = call @layers_matmul_2(%last) : (tensor<3x3xf16>) -> tensor<3x3xf16>
  return %x, %y, %z : tensor<4x4xf16>, tensor<3x3xf16>, tensor<3x3xf16>
}

// -----

// A kernel writes the tensors of one number that a matmul reads, and a constant that is returned.
//
// CHECK-LABEL: func.func @ones(
// CHECK: [[ones:%.+]] = call @ones_elementwise_0() : () -> tensor<2x4xf32>
// CHECK: call @ones_matmul_0([[ones]])
// CHECK: call @ones_matmul_0([[ones]])
// CHECK: call @ones_elementwise_1() : () -> tensor<3xf32>
// CHECK: func.func private @ones_elementwise_0() -> tensor<2x4xf32>
// CHECK: [[one:%.+]] = arith.constant 1.0
// CHECK: linalg.yield [[one]]
// CHECK: func.func private @ones_elementwise_1() -> tensor<3xf32>
// CHECK: linalg.yield
func.func private @ones_matmul_0(%x: tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @ones() -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<3xf32>) {
  %one = arith.constant 1.0 : f32
  %twos = arith.constant dense<2.0> : tensor<3xf32>
  %0 = tensor.empty() : tensor<2x4xf32>
  %1 = linalg.fill ins(%one : f32) outs(%0 : tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = call @ones_matmul_0(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = call @ones_matmul_0(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y, %z, %twos : tensor<2x4xf32>, tensor<2x4xf32>, tensor<3xf32>
}

// -----

func.func @empty(%x: tensor<0x5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{'linalg.reduce' of 'tensor<0x5xf32>', which has no elements; accepted: extents of at least 1}}
  %r = linalg.reduce { arith.addf } ins(%x : tensor<0x5xf32>) outs(%y : tensor<5xf32>) dimensions = [0]
  return %r : tensor<5xf32>
}

// -----

// A state that is a result, in another shape too, and that its output reads: one kernel with both results.
// CHECK-LABEL: func.func @cell(
// CHECK: [[both:%.+]]:2 = call @cell_elementwise_0(%gate, %state)
// CHECK: [[flat:%.+]] = tensor.collapse_shape [[both]]#0
// CHECK: return [[flat]], [[both]]#1
// CHECK: func.func private @cell_elementwise_0(
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x8xf16>, tensor<4x8xf16>)
// CHECK-NEXT: ^bb0([[gate:%.+]]: f16, [[state:%.+]]: f16, {{.*}}: f16, {{.*}}: f16):
// CHECK-NEXT: [[new:%.+]] = arith.mulf [[gate]], [[state]] : f16
// CHECK-NEXT: [[bounded:%.+]] = math.tanh [[new]] : f16
// CHECK-NEXT: [[output:%.+]] = arith.mulf [[gate]], [[bounded]] : f16
// CHECK-NEXT: linalg.yield [[new]], [[output]] : f16, f16
#same = affine_map<(i, j) -> (i, j)>
func.func @cell(%gate: tensor<4x8xf16>, %state: tensor<4x8xf16>) -> (tensor<32xf16>, tensor<4x8xf16>) {
  %0 = tensor.empty() : tensor<4x8xf16>
  %new = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %state : tensor<4x8xf16>, tensor<4x8xf16>) outs(%0 : tensor<4x8xf16>) {
  ^bb0(%g: f16, %s: f16, %out: f16):
    %v = arith.mulf %g, %s : f16
    linalg.yield %v : f16
  } -> tensor<4x8xf16>
  %flat = tensor.collapse_shape %new [[0, 1]] : tensor<4x8xf16> into tensor<32xf16>
  %output = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%new, %gate : tensor<4x8xf16>, tensor<4x8xf16>) outs(%0 : tensor<4x8xf16>) {
  ^bb0(%n: f16, %g: f16, %out: f16):
    %bounded = math.tanh %n : f16
    %v = arith.mulf %g, %bounded : f16
    linalg.yield %v : f16
  } -> tensor<4x8xf16>
  return %flat, %output : tensor<32xf16>, tensor<4x8xf16>
}

// -----

// An op that reads other elements of what the first one makes, or what depends on it, stays apart.
// CHECK-LABEL: func.func @apart(
// CHECK: [[new:%.+]] = call @apart_elementwise_0(%x)
// CHECK: [[sums:%.+]] = call @apart_elementwise_1([[new]])
// CHECK: call @apart_elementwise_2([[new]], [[sums]])
// CHECK: call @apart_elementwise_3([[new]])
#same = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
func.func @apart(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x8xf32>
  %1 = tensor.empty() : tensor<8xf32>
  %2 = linalg.fill ins(%zero : f32) outs(%1 : tensor<8xf32>) -> tensor<8xf32>
  %new = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  %sums = linalg.generic {indexing_maps = [#same, #row], iterator_types = ["parallel", "reduction"]}
      ins(%new : tensor<8x8xf32>) outs(%2 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %parts = linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%new, %sums : tensor<8x8xf32>, tensor<8xf32>) outs(%0 : tensor<8x8xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %v = arith.divf %in, %sum : f32
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  %turned = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%new : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  return %parts, %turned : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// An op that only adds axes of one element, and that fusion has left, is a view.
// CHECK-LABEL: func.func @unit_axes(
// CHECK: [[y:%.+]] = tensor.expand_shape {{.*}} : tensor<8xf32> into tensor<1x8xf32>
// CHECK: [[z:%.+]] = call @unit_axes_matmul_0([[y]])
// CHECK: return [[z]]
func.func private @unit_axes_matmul_0(%x: tensor<1x8xf32>) -> tensor<1x8xf32>
func.func @unit_axes(%x: tensor<8xf32>) -> tensor<1x8xf32> attributes {has_stages} {
  %0 = tensor.empty() : tensor<1x8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8xf32>) outs(%0 : tensor<1x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x8xf32>
  %2 = call @unit_axes_matmul_0(%1) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %2 : tensor<1x8xf32>
}

// -----

// A slice of a slice is one.
// CHECK-LABEL: func.func @nested(
// CHECK-NEXT: tensor.extract_slice %x[1, 0] [3, 5] [1, 1] : tensor<8x5xi32>
// CHECK-NEXT: tensor.extract_slice %x[4, 0] [3, 5] [1, 1] : tensor<8x5xi32>
// CHECK-NEXT: call
func.func @nested(%x: tensor<8x5xi32>) -> (tensor<3x5xi32>, tensor<3x5xi32>) attributes {has_stages} {
  %middle = tensor.extract_slice %x[1, 0] [6, 5] [1, 1] : tensor<8x5xi32> to tensor<6x5xi32>
  %0 = tensor.extract_slice %middle[0, 0] [3, 5] [1, 1] : tensor<6x5xi32> to tensor<3x5xi32>
  %1 = tensor.extract_slice %middle[3, 0] [3, 5] [1, 1] : tensor<6x5xi32> to tensor<3x5xi32>
  return %0, %1 : tensor<3x5xi32>, tensor<3x5xi32>
}
