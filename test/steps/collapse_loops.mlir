// Loops over neighbours in memory become one: of an elementwise op all that its operands have next to each other, of a
// chain over the same rows those over the columns.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/rows.mlir --step collapse_loops --split-input-file \
// RUN:   | FileCheck %s

#all = affine_map<(a, b, c) -> (a, b, c)>
#scale = affine_map<(a, b, c) -> (a)>

// CHECK: #[[map:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[scale:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @scaled(
// CHECK-DAG: %[[x:.+]] = memref.collapse_shape %x {{\[}}[0], [1, 2]] : memref<4x6x10xf16> into memref<4x60xf16>
// CHECK-DAG: %[[y:.+]] = memref.collapse_shape %y {{\[}}[0], [1, 2]] : memref<4x6x10xf16> into memref<4x60xf16>
// CHECK: linalg.generic {indexing_maps = [#[[map]], #[[scale]], #[[map]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[x]], %s : {{.*}}) outs(%[[y]] : memref<4x60xf16>)
func.func @scaled(%x: memref<4x6x10xf16>, %s: memref<4xf16>, %y: memref<4x6x10xf16>) {
  linalg.generic {indexing_maps = [#all, #scale, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : memref<4x6x10xf16>, memref<4xf16>) outs(%y : memref<4x6x10xf16>) {
  ^bb0(%in: f16, %f: f16, %out: f16):
    %v = arith.mulf %in, %f : f16
    linalg.yield %v : f16
  }
  return
}

// -----

#all = affine_map<(a, b) -> (a, b)>

// Rows of a part do not follow each other.
// CHECK-LABEL: func.func @part(
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @part(%x: memref<4x8xf16, strided<[10, 1]>>, %y: memref<4x8xf16>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf16, strided<[10, 1]>>) outs(%y : memref<4x8xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

#all = affine_map<(a, b, c) -> (a, b, c)>

// The index of a loop is read: it stays, and the others have other numbers.
// CHECK-LABEL: func.func @counted(
// CHECK: memref.collapse_shape %x {{\[}}[0, 1], [2]]
// CHECK: linalg.index 1 : index
func.func @counted(%x: memref<4x6x10xf32>, %y: memref<4x6x10xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<4x6x10xf32>) outs(%y : memref<4x6x10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 2 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %v = arith.addf %in, %f : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(a, b) -> (a, b)>
#swapped = affine_map<(a, b) -> (b, a)>

// CHECK-LABEL: func.func @transposed(
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @transposed(%x: memref<4x8xf16>, %y: memref<8x4xf16>) {
  linalg.generic {indexing_maps = [#swapped, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf16>) outs(%y : memref<8x4xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

#all = affine_map<(n, g, c, p) -> (n, g, c, p)>
#row = affine_map<(n, g, c, p) -> (n, g)>
#weight = affine_map<(n, g, c, p) -> (c)>

// A chain: the rows are images and groups, and stay two loops. Channels and pixels are one loop of both ops; with a
// weight of each channel, they would be two.
// CHECK-LABEL: func.func @chain(
// CHECK: %[[x:.+]] = memref.collapse_shape %x {{\[}}[0], [1], [2, 3]] : memref<2x3x4x5xf32> into memref<2x3x20xf32>
// CHECK: linalg.generic {{.*}} ["parallel", "parallel", "reduction"]{{.*}} ins(%[[x]]
// CHECK: linalg.generic {{.*}} ["parallel", "parallel", "parallel"]{{.*}} ins(%[[x]], %
func.func @chain(%x: memref<2x3x4x5xf32>, %y: memref<2x3x4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<2x3xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<2x3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : memref<2x3x4x5xf32>) outs(%s : memref<2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s : memref<2x3x4x5xf32>, memref<2x3xf32>) outs(%y : memref<2x3x4x5xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %v = arith.divf %in, %sum : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(n, g, c, p) -> (n, g, c, p)>
#row = affine_map<(n, g, c, p) -> (n, g)>
#weight = affine_map<(n, g, c, p) -> (c)>

// CHECK-LABEL: func.func @weighted(
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @weighted(%x: memref<2x3x4x5xf32>, %w: memref<4xf32>, %y: memref<2x3x4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<2x3xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<2x3xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : memref<2x3x4x5xf32>) outs(%s : memref<2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #weight, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s, %w : memref<2x3x4x5xf32>, memref<2x3xf32>, memref<4xf32>) outs(%y : memref<2x3x4x5xf32>) {
  ^bb0(%in: f32, %sum: f32, %f: f32, %out: f32):
    %d = arith.divf %in, %sum : f32
    %v = arith.mulf %d, %f : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#result = affine_map<(a, b, c, d) -> (a, b, c, d)>
#operand = affine_map<(a, b, c, d) -> (a, c, d, b)>

// Loops of one iteration are left out: this copy moves no element.
// CHECK-LABEL: func.func @unit(
// CHECK-DAG: %[[x:.+]] = memref.collapse_shape %x {{\[}}[0, 1, 2, 3]] : memref<5x3x4x1xf32> into memref<60xf32>
// CHECK-DAG: %[[y:.+]] = memref.collapse_shape %y {{\[}}[0, 1, 2, 3]] : memref<5x1x3x4xf32> into memref<60xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[x]] {{.*}} outs(%[[y]]
func.func @unit(%x: memref<5x3x4x1xf32>, %y: memref<5x1x3x4xf32>) {
  linalg.generic {indexing_maps = [#operand, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<5x3x4x1xf32>) outs(%y : memref<5x1x3x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

#result = affine_map<(a, b, c) -> (a, b, c)>
#operand = affine_map<(a, b, c) -> (a, c, b)>

// Of a part of a buffer: a column of an axis of one element has the stride of the axis before it.
// CHECK-LABEL: func.func @unit_part(
// CHECK: memref.collapse_shape %x {{\[}}[0], [1, 2]] : memref<5x4x1xf32, strided<[8, 1, 3]>>
// CHECK-SAME: into memref<5x4xf32, strided<[8, 1]>>
func.func @unit_part(%x: memref<5x4x1xf32, strided<[8, 1, 3]>>, %y: memref<5x1x4xf32>) {
  linalg.generic {indexing_maps = [#operand, #result], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<5x4x1xf32, strided<[8, 1, 3]>>) outs(%y : memref<5x1x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

#all = affine_map<(a, b) -> (a, b)>

// What the result begins with is copied, to the axes that the op has.
// CHECK-LABEL: func.func @begun(
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @begun(%x: memref<4x8xf16>, %start: memref<4x8xf16>, %y: memref<4x8xf16>) {
  memref.copy %start, %y : memref<4x8xf16> to memref<4x8xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf16>) outs(%y : memref<4x8xf16>) {
  ^bb0(%in: f16, %out: f16):
    %v = arith.addf %in, %out : f16
    linalg.yield %v : f16
  }
  return
}

// -----

// A copy is an elementwise op too.
// CHECK-LABEL: func.func @copied(
// CHECK: %[[x:.+]] = memref.collapse_shape %x {{\[}}[0, 1]] : memref<4x8xf16> into memref<32xf16>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[x]]
func.func @copied(%x: memref<4x8xf16>, %y: memref<4x8xf16>) {
  linalg.copy ins(%x : memref<4x8xf16>) outs(%y : memref<4x8xf16>)
  return
}

// -----

#all = affine_map<(a, b, c) -> (a, b, c)>

// A loop of one iteration that stays, whose index the body reads here, has its axis between those of two others.
// CHECK-LABEL: func.func @unit_between(
// CHECK-NOT: memref.collapse_shape
// CHECK: return
func.func @unit_between(%x: memref<4x1x8xi64>, %y: memref<4x1x8xi64>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<4x1x8xi64>) outs(%y : memref<4x1x8xi64>) {
  ^bb0(%in: i64, %out: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %v = arith.addi %in, %n : i64
    linalg.yield %v : i64
  }
  return
}
