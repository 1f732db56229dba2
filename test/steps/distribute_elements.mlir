// A thread computes an element of an elementwise op, of any number of axes. A warp computes one of a sum along the innermost
// axis, in f32. A thread computes one of a sum along another axis, of which neighbours read neighbours. A result that
// nothing initializes, and several ops, are refused.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/elementwise.mlir --step distribute_elements --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @four_axes(
// CHECK: gpu.launch blocks({{.*}} = %c2, {{.*}} threads({{.*}} = %c256,
// CHECK: [[inside:%.+]] = arith.cmpi ult, %{{.*}}, %c420
// CHECK: scf.if [[inside]]
// CHECK: memref.load %s[
// CHECK: memref.load %w[
// CHECK: memref.store
#map = affine_map<(a, b, c, d) -> (a, b, c, d)>
#swap = affine_map<(a, b, c, d) -> (a, c, b, d)>
func.func @four_axes(%s: memref<2x5x6x7xf16>, %z: memref<2x5x6x7xf16>, %w: memref<2x6x5x7xf16>) {
  linalg.generic {indexing_maps = [#map, #swap, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %w : memref<2x5x6x7xf16>, memref<2x6x5x7xf16>) outs(%z : memref<2x5x6x7xf16>) {
  ^bb0(%in: f16, %other: f16, %out: f16):
    %v = arith.addf %in, %other : f16
    linalg.yield %v : f16
  }
  return
}

// -----

// CHECK-LABEL: func.func @rows(
// CHECK: threads({{.*}} = %c256,
// CHECK: [[sum:%.+]] = scf.for %{{.*}} = %{{.*}} to %c100 step %c32 iter_args({{.*}}) -> (f32)
// CHECK: memref.load %x[
// CHECK: arith.extf
// CHECK: gpu.shuffle xor [[sum]]
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK: arith.truncf
// CHECK: memref.store
// CHECK-NOT: linalg.fill
// CHECK: return
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @rows(%x: memref<10x100xf16>, %y: memref<10xf16>) {
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%y : memref<10xf16>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<10x100xf16>) outs(%y : memref<10xf16>) {
  ^bb0(%in: f16, %out: f16):
    %v = arith.addf %in, %out : f16
    linalg.yield %v : f16
  }
  return
}

// -----

// CHECK-LABEL: func.func @columns(
// CHECK: memref.load %begin[
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args
// CHECK: memref.load %x[
// CHECK: arith.maximumf
// CHECK-NOT: gpu.shuffle
// CHECK: memref.store
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @columns(%x: memref<100x10xf32>, %begin: memref<10xf32>, %y: memref<10xf32>) {
  memref.copy %begin, %y : memref<10xf32> to memref<10xf32>
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<100x10xf32>) outs(%y : memref<10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @from_nothing(%x: memref<10x100xf16>, %y: memref<10xf16>) {
  // expected-error@+1 {{tc.distribute_elements: the op reads a result that nothing initializes}}
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<10x100xf16>) outs(%y : memref<10xf16>) {
  ^bb0(%in: f16, %out: f16):
    %v = arith.addf %in, %out : f16
    linalg.yield %v : f16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#diagonal = affine_map<(i, j) -> (i + j)>
func.func @diagonal(%x: memref<19xf16>, %y: memref<10x10xf16>) {
  // expected-error@+1 {{tc.distribute_elements: the indexing map (d0, d1) -> (d0 + d1); accepted: projected permutations}}
  linalg.generic {indexing_maps = [#diagonal, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<19xf16>) outs(%y : memref<10x10xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
// expected-error@unknown {{tc.distribute_elements: expected one linalg.generic, found 2}}
func.func @two(%x: memref<10x10xf16>, %y: memref<10x10xf16>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x10xf16>) outs(%y : memref<10x10xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x10xf16>) outs(%y : memref<10x10xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
func.func @beside(%x: memref<10x10xf16>, %y: memref<10x10xf16>) {
  // expected-error@+1 {{tc.distribute_elements: an op beside the one linalg.generic}}
  linalg.transpose ins(%x : memref<10x10xf16>) outs(%y : memref<10x10xf16>) permutation = [1, 0]
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x10xf16>) outs(%y : memref<10x10xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @results(%x: memref<10x10xf32>, %y: memref<10x10xf32>, %z: memref<10xf32>) {
  // expected-error@+1 {{tc.distribute_elements: results of different loops; accepted: results of one shape}}
  linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<10x10xf32>) outs(%y, %z : memref<10x10xf32>, memref<10xf32>) {
  ^bb0(%in: f32, %e: f32, %sum: f32):
    %v = arith.addf %in, %sum : f32
    linalg.yield %in, %v : f32, f32
  }
  return
}

// -----

// The result begins with a copy through another view of its buffer.
#row = affine_map<(i) -> (i)>
func.func @copy_to_a_view(%x: memref<10xf32>, %begin: memref<2x5xf32>, %y: memref<10xf32>) {
  %view = memref.expand_shape %y [[0, 1]] output_shape [2, 5] : memref<10xf32> into memref<2x5xf32>
  // expected-error@+1 {{tc.distribute_elements: a copy to another view of the result}}
  memref.copy %begin, %view : memref<2x5xf32> to memref<2x5xf32>
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%x : memref<10xf32>) outs(%y : memref<10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// The lanes of a warp find the first of the largest values: each of neighbours, and then of two lanes the second one's
// where it exceeds. An extremum that is NaN is computed again, one value after the other.
// CHECK-LABEL: func.func @argmax(
// CHECK: gpu.launch blocks({{.*}} = %c1, {{.*}} threads({{.*}} = %c256,
// CHECK: [[found:%.+]]:2 = scf.for [[at:%.+]] = %{{.*}} to %{{.*}} step %c1 iter_args([[most:%.+]] = %{{.*}}, [[where:%.+]] = %c-1_i32) -> (f32, i32)
// CHECK: [[x:%.+]] = memref.load %x[%{{.*}}, [[at]]]
// CHECK: [[own:%.+]] = arith.index_cast [[at]] : index to i32
// CHECK: [[is:%.+]] = arith.cmpf ogt, [[x]], [[most]] : f32
// CHECK: arith.select [[is]], [[own]], [[where]] : i32
// CHECK: arith.maximumf [[most]], [[x]] : f32
// CHECK-COUNT-10: gpu.shuffle down
// CHECK: scf.if
// CHECK: [[nan:%.+]] = arith.cmpf uno,
// CHECK: scf.if [[nan]] {
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args({{.*}}) -> (f32, i64)
// CHECK: } else {
// CHECK: [[n:%.+]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: [[j:%.+]] = arith.index_cast [[n]] : index to i64
// CHECK: [[place:%.+]] = arith.select %{{.*}}, [[j]],
// CHECK-DAG: memref.store [[place]], %place
#both = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @argmax(%x: memref<8x100xf32>, %value: memref<8xf32>, %place: memref<8xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  linalg.fill ins(%low : f32) outs(%value : memref<8xf32>)
  linalg.fill ins(%none : i64) outs(%place : memref<8xi64>)
  linalg.generic {indexing_maps = [#both, #first, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x100xf32>) outs(%value, %place : memref<8xf32>, memref<8xi64>) {
  ^bb0(%in: f32, %most: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %more = arith.maximumf %in, %most : f32
    %is = arith.cmpf ogt, %in, %most : f32
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f32, i64
  }
  return
}

// -----

// The last of equal ones: a thread computes each.
// CHECK-LABEL: func.func @last(
// CHECK-NOT: gpu.shuffle
// CHECK: // -----
#both = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @last(%x: memref<8x100xf32>, %value: memref<8xf32>, %place: memref<8xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  linalg.fill ins(%low : f32) outs(%value : memref<8xf32>)
  linalg.fill ins(%none : i64) outs(%place : memref<8xi64>)
  linalg.generic {indexing_maps = [#both, #first, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x100xf32>) outs(%value, %place : memref<8xf32>, memref<8xi64>) {
  ^bb0(%in: f32, %most: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %more = arith.maximumf %in, %most : f32
    %is = arith.cmpf oge, %in, %most : f32
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f32, i64
  }
  return
}

// -----

// LLVM has no fp8: it is extended by its bits.
// CHECK-LABEL: func.func @widened(
// CHECK: [[F8:%.+]] = memref.load %x[{{.*}}] : memref<10x10xf8E5M2>
// CHECK: [[BITS:%.+]] = arith.bitcast [[F8]] : f8E5M2 to i8
// CHECK: [[WIDE:%.+]] = arith.extui [[BITS]] : i8 to i16
// CHECK: [[HALF:%.+]] = arith.bitcast %{{.*}} : i16 to f16
// CHECK: [[SINGLE:%.+]] = arith.extf [[HALF]] : f16 to f32
// CHECK: memref.store [[SINGLE]], %y
#all = affine_map<(i, j) -> (i, j)>
func.func @widened(%x: memref<10x10xf8E5M2>, %y: memref<10x10xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x10xf8E5M2>) outs(%y : memref<10x10xf32>) {
  ^bb0(%in: f8E5M2, %out: f32):
    %v = arith.extf %in : f8E5M2 to f32
    linalg.yield %v : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
func.func @added(%x: memref<10x10xf8E4M3FN>, %y: memref<10x10xf8E4M3FN>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x10xf8E4M3FN>) outs(%y : memref<10x10xf8E4M3FN>) {
  ^bb0(%in: f8E4M3FN, %out: f8E4M3FN):
    // expected-error@+1 {{tc.distribute_elements: 'arith.addf' of f8E4M3FN outside of a matmul; accepted: f16, bf16, f32, f64 and integers}}
    %v = arith.addf %in, %in : f8E4M3FN
    linalg.yield %v : f8E4M3FN
  }
  return
}
