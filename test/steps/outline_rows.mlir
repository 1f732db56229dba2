// A softmax becomes one function, and so does a sum with what makes its terms and what another kernel reads. An op that a
// matmul separates from the chain, a sum along columns, and a tensor that another body reads by indices stay.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step outline_rows --split-input-file \
// RUN:   | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @softmax(%x: tensor<4x1x8xf32>)
// CHECK-NOT: linalg.generic
// CHECK: [[y:%.+]] = call @softmax_rows_0(%x) : (tensor<4x1x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: return [[y]]
// CHECK: func.func private @softmax_rows_0({{.*}} {bufferization.writable = false})
// CHECK-COUNT-3: linalg.generic
// CHECK: return
func.func @softmax(%x: tensor<4x1x8xf32>) -> tensor<4x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x1x8xf32> into tensor<4x8xf32>
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.empty() : tensor<4x8xf32>
  %lows = linalg.fill ins(%low : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%flat : tensor<4x8xf32>) outs(%lows : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%flat, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %d = arith.subf %in, %m : f32
    %e = math.exp %d : f32
    %v = arith.addf %e, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%flat, %max, %sum : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) outs(%1 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %m: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %m : f32
    %e = math.exp %d : f32
    %v = arith.divf %e, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// The matmul reads what the chain computes, and the last op reads the matmul: it cannot be in the chain.
// CHECK-LABEL: func.func @between(
// CHECK: [[made:%.+]]:2 = call @between_rows_0(
// CHECK: [[c:%.+]] = call @between_matmul_0([[made]]#0)
// CHECK: linalg.generic {{.*}} ins([[c]], [[made]]#1 : tensor<4x8xf32>, tensor<4xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
func.func private @between_matmul_0(%x: tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @between(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.empty() : tensor<4x8xf32>
  %2 = tensor.empty() : tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%1 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %c = func.call @between_matmul_0(%e) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<4x8xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%c, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%1 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.divf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %none = linalg.fill ins(%zero : f32) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  %columns = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<4x8xf32>) outs(%none : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y, %columns : tensor<4x8xf32>, tensor<8xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The second op reads sums of other rows.
// CHECK-LABEL: func.func @other_rows(
// CHECK-NOT: call
// CHECK: return
func.func @other_rows(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.empty() : tensor<4x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x4xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> (j)>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x4xf32>, tensor<4xf32>) outs(%1 : tensor<4x4xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.divf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A transpose of what a chain computes, whose rows are in another order, joins it; one that moves columns, and one that
// no chain has, stay as they are.
// CHECK-DAG: #[[SAME:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[TURNED:.+]] = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
// CHECK-LABEL: func.func @turned(
// CHECK: [[rows:%.+]] = call @turned_rows_0(%x)
// CHECK: [[columns:%.+]] = linalg.generic {indexing_maps = [#[[TURNED]], #[[SAME]]], {{.*}} ins(%y
// CHECK: linalg.index 1
// CHECK: return [[rows]], [[columns]]
// CHECK: func.func private @turned_rows_0(
// CHECK: linalg.generic {indexing_maps = [#[[SAME]], #{{.+}}, #[[TURNED]]]
// CHECK: linalg.index 1
// CHECK: arith.divf
#all = affine_map<(i, j, k) -> (i, j, k)>
#turned = affine_map<(i, j, k) -> (j, i, k)>
#row = affine_map<(i, j, k) -> (i, j)>
#turned_row = affine_map<(i, j, k) -> (j, i)>
func.func @turned(%x: tensor<2x3x8xf32>, %y: tensor<2x3x8xf32>) -> (tensor<3x2x8xf32>, tensor<3x2x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<2x3xf32>
  %1 = tensor.empty() : tensor<3x2x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x3xf32>) -> tensor<2x3xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x3x8xf32>) outs(%zeros : tensor<2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  %parts = linalg.generic {indexing_maps = [#turned, #turned_row, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<2x3x8xf32>, tensor<2x3xf32>) outs(%1 : tensor<3x2x8xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %v = arith.divf %in, %s : f32
    %w = arith.addf %v, %f : f32
    linalg.yield %w : f32
  } -> tensor<3x2x8xf32>
  %other = linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<2x3x8xf32>) outs(%1 : tensor<3x2x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %v = arith.addf %in, %f : f32
    linalg.yield %v : f32
  } -> tensor<3x2x8xf32>
  return %parts, %other : tensor<3x2x8xf32>, tensor<3x2x8xf32>
}

// -----

// An op without results, the assertions of one that is fused with its reader, is no reduction of what it reads.
// CHECK-LABEL: func.func @asserted(
// CHECK-NOT: call
// CHECK: return
func.func @asserted(%x: tensor<36xi64>, %y: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %c0 = arith.constant 0 : i64
  %0 = tensor.empty() : tensor<4x1xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x1xf32>) outs(%0 : tensor<4x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = math.exp %in : f32
    linalg.yield %2 : f32
  } -> tensor<4x1xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, 0)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<36xi64>, tensor<4x1xf32>) {
  ^bb0(%in: i64, %z: f32):
    %2 = arith.cmpi sge, %in, %c0 : i64
    cf.assert %2, "index must be larger or equal to 0"
    linalg.yield
  }
  return %1 : tensor<4x1xf32>
}

// -----

// Rows of a constant are read from memory, where a copy writes them.
// CHECK-LABEL: func.func @constant(
// CHECK: [[copy:%.+]] = linalg.copy
// CHECK: call @constant_rows_0([[copy]]
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @constant() -> tensor<8x16xf32> {
  %x = arith.constant dense<0.5> : tensor<8x16xf32>
  %c0 = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%c0 : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    %s = arith.addf %e, %out : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sums : tensor<8x16xf32>, tensor<8xf32>) outs(%2 : tensor<8x16xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %q = arith.divf %in, %sum : f32
    linalg.yield %q : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

#line = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#matrix = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>

// What adds an axis of one element is a view, also of what the chain returns: no chain returns a tensor and its view.
// CHECK-LABEL: func.func @unit_axis(
// CHECK: [[made:%.+]]:2 = call @unit_axis_rows_0({{.*}}) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
// CHECK: [[view:%.+]] = tensor.expand_shape [[made]]#0
// CHECK: linalg.generic {{.*}} ins([[view]], %y : tensor<1x4xf32>, tensor<4x4xf32>)
func.func @unit_axis(%x: tensor<4xf32>, %y: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.empty() : tensor<f32>
  %2 = tensor.empty() : tensor<1x4xf32>
  %3 = tensor.empty() : tensor<4x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%1 : tensor<f32>) -> tensor<f32>
  %t = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.tanh %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %row = linalg.generic {indexing_maps = [#columns, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<4xf32>) outs(%2 : tensor<1x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x4xf32>
  %sum = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%t : tensor<4xf32>) outs(%zeros : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %last = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, j)>, #matrix, #matrix],
      iterator_types = ["parallel", "parallel"]}
      ins(%row, %y : tensor<1x4xf32>, tensor<4x4xf32>) outs(%3 : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %t, %sum, %last : tensor<4xf32>, tensor<f32>, tensor<4x4xf32>
}
