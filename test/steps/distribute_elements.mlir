// A thread computes an element of an elementwise op, of any number of axes, or as many as are 16 bytes where there are
// many. A warp computes one of a sum along the innermost axis, in f32, or neighbours of a few sums along another axis. A
// result that nothing initializes, and several ops, are refused.
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

// A copy that keeps the innermost axis: a thread copies 16 bytes, of 2 x 5 x 6 rows of four vectors.
//
// CHECK-LABEL: func.func @vectors(
// CHECK: gpu.launch blocks({{.*}} = %c1, {{.*}} threads({{.*}} = %c256,
// CHECK: arith.cmpi ult, %{{.*}}, %c240
// CHECK: [[column:%.+]] = affine.apply {{.*}}
// CHECK: [[vector:%.+]] = vector.load %x[{{.*}}] {alignment = 16 : i64} : memref<2x6x5x32xf16>, vector<8xf16>
// CHECK: vector.store [[vector]], %z[{{.*}}] {alignment = 16 : i64} : memref<2x5x6x32xf16>, vector<8xf16>
// CHECK-NOT: memref.load
#map = affine_map<(a, b, c, d) -> (a, b, c, d)>
#swap = affine_map<(a, b, c, d) -> (a, c, b, d)>
func.func @vectors(%x: memref<2x6x5x32xf16>, %z: memref<2x5x6x32xf16>) {
  linalg.generic {indexing_maps = [#swap, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<2x6x5x32xf16>) outs(%z : memref<2x5x6x32xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

// 64 x 4096 elements, eight of a thread: a row of %b is read with them, an element of %r for all of them, and what the
// result held is not read.
//
// CHECK-LABEL: func.func @neighbours(
// CHECK: gpu.launch blocks({{.*}} = %c128, {{.*}} threads({{.*}} = %c256,
// CHECK-DAG: [[x:%.+]] = vector.load %x[{{.*}}] {alignment = 16 : i64} : memref<64x4096xf16>, vector<8xf16>
// CHECK-DAG: [[b:%.+]] = vector.load %b[{{.*}}] {alignment = 16 : i64} : memref<4096xf16>, vector<8xf16>
// CHECK: [[x0:%.+]] = vector.extract [[x]][0] : f16 from vector<8xf16>
// CHECK: [[b0:%.+]] = vector.extract [[b]][0] : f16 from vector<8xf16>
// CHECK: [[r0:%.+]] = memref.load %r[
// CHECK: [[s0:%.+]] = arith.addf [[x0]], [[b0]] : f16
// CHECK: [[p0:%.+]] = arith.mulf [[s0]], [[r0]] : f16
// CHECK: vector.extract [[x]][7]
// CHECK: [[all:%.+]] = vector.from_elements [[p0]],
// CHECK: vector.store [[all]], %z[{{.*}}] {alignment = 16 : i64} : memref<64x4096xf16>, vector<8xf16>
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @neighbours(%x: memref<64x4096xf16>, %b: memref<4096xf16>, %r: memref<64xf16>, %z: memref<64x4096xf16>) {
  linalg.generic {indexing_maps = [#all, #column, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b, %r : memref<64x4096xf16>, memref<4096xf16>, memref<64xf16>) outs(%z : memref<64x4096xf16>) {
  ^bb0(%in: f16, %bias: f16, %scale: f16, %out: f16):
    %s = arith.addf %in, %bias : f16
    %p = arith.mulf %s, %scale : f16
    linalg.yield %p : f16
  }
  return
}

// -----

// Four of f32 and f16; one of i1 and f16, and of a matrix in another order.
//
// CHECK-LABEL: func.func @narrowed(
// CHECK: vector.load %x[{{.*}}] {alignment = 16 : i64} : memref<64x4096xf32>, vector<4xf32>
// CHECK-COUNT-4: arith.truncf
// CHECK: vector.store {{.*}}, %z[{{.*}}] {alignment = 8 : i64} : memref<64x4096xf16>, vector<4xf16>
#all = affine_map<(i, j) -> (i, j)>
func.func @narrowed(%x: memref<64x4096xf32>, %z: memref<64x4096xf16>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x4096xf32>) outs(%z : memref<64x4096xf16>) {
  ^bb0(%in: f32, %out: f16):
    %s = arith.truncf %in : f32 to f16
    linalg.yield %s : f16
  }
  return
}

// -----

// CHECK-LABEL: func.func @masked(
// CHECK-NOT: vector.load
#all = affine_map<(i, j) -> (i, j)>
func.func @masked(%x: memref<64x4096xf16>, %mask: memref<64x4096xi1>, %z: memref<64x4096xf16>) {
  %zero = arith.constant 0.0 : f16
  linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mask : memref<64x4096xf16>, memref<64x4096xi1>) outs(%z : memref<64x4096xf16>) {
  ^bb0(%in: f16, %is: i1, %out: f16):
    %s = arith.select %is, %in, %zero : f16
    linalg.yield %s : f16
  }
  return
}

// -----

// A transposed operand of another matrix: a thread loads two elements of eight rows of it, and eight of two rows of the
// other; four threads store to the same rows.
//
// CHECK-LABEL: func.func @turned(
// CHECK: arith.cmpi ult, %{{.*}}, %c16384
// CHECK-COUNT-2: vector.load %x[{{.*}}] {alignment = 16 : i64} : memref<64x4096xf16>, vector<8xf16>
// CHECK-COUNT-8: vector.load %y[{{.*}}] {alignment = 4 : i64} : memref<4096x64xf16>, vector<2xf16>
// CHECK-COUNT-2: vector.store %{{.*}}, %z[{{.*}}] {alignment = 16 : i64} : memref<64x4096xf16>, vector<8xf16>
// CHECK-NOT: memref.load
#all = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
func.func @turned(%x: memref<64x4096xf16>, %y: memref<4096x64xf16>, %z: memref<64x4096xf16>) {
  linalg.generic {indexing_maps = [#all, #swap, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<64x4096xf16>, memref<4096x64xf16>) outs(%z : memref<64x4096xf16>) {
  ^bb0(%in: f16, %other: f16, %out: f16):
    %s = arith.addf %in, %other : f16
    linalg.yield %s : f16
  }
  return
}

// -----

// Rows of seven elements begin anywhere, columns of the result are no neighbours of the buffer, and a part of a buffer
// may begin at any element.
//
// CHECK-LABEL: func.func @short_rows(
// CHECK-NOT: vector.load
#map = affine_map<(a, b, c) -> (a, b, c)>
#swap = affine_map<(a, b, c) -> (b, a, c)>
func.func @short_rows(%x: memref<6x5x7xf16>, %z: memref<5x6x7xf16>) {
  linalg.generic {indexing_maps = [#swap, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<6x5x7xf16>) outs(%z : memref<5x6x7xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

// A transpose of a few columns: 16 rows of the operand are two vectors of a row of the result, which two threads store.
//
// CHECK-LABEL: func.func @columns_become_rows(
// CHECK: arith.cmpi ult, %{{.*}}, %c32 : index
// CHECK-COUNT-8: vector.load %x[{{.*}}] {alignment = 4 : i64} : memref<16x32xf16>, vector<2xf16>
// CHECK: [[first:%.+]] = vector.from_elements
// CHECK: vector.store [[first]], %z[%[[row:.+]], %[[begin:.+]]] {alignment = 16 : i64} : memref<32x16xf16>, vector<8xf16>
// CHECK: [[second:%.+]] = vector.from_elements
// CHECK: vector.store [[second]], %z[%{{.+}}, %[[begin]]] {alignment = 16 : i64} : memref<32x16xf16>, vector<8xf16>
// CHECK-NOT: scf.if
#map = affine_map<(a, b) -> (a, b)>
#swap = affine_map<(a, b) -> (b, a)>
func.func @columns_become_rows(%x: memref<16x32xf16>, %z: memref<32x16xf16>) {
  linalg.generic {indexing_maps = [#swap, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<16x32xf16>) outs(%z : memref<32x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

// Columns of a buffer whose rows and offset are multiples of four elements: vectors of 8 bytes.
//
// CHECK-LABEL: func.func @aligned_part(
// CHECK: gpu.launch
// CHECK: %[[part:.+]] = memref.subview %x[0, 4] [16, 32] [1, 1]
// CHECK: vector.load %[[part]][{{.*}}] {alignment = 8 : i64} : memref<16x32xf16, {{.*}}>, vector<4xf16>
// CHECK: vector.store {{.*}}, %z[{{.*}}] {alignment = 8 : i64} : memref<16x32xf16>, vector<4xf16>
#map = affine_map<(a, b) -> (a, b)>
func.func @aligned_part(%x: memref<16x36xf16>, %z: memref<16x32xf16>) {
  %part = memref.subview %x[0, 4] [16, 32] [1, 1] : memref<16x36xf16> to memref<16x32xf16, strided<[36, 1], offset: 4>>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%part : memref<16x32xf16, strided<[36, 1], offset: 4>>) outs(%z : memref<16x32xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  return
}

// -----

// CHECK-LABEL: func.func @part(
// CHECK-NOT: vector.load
#map = affine_map<(a, b) -> (a, b)>
func.func @part(%x: memref<16x33xf16>, %z: memref<16x32xf16>) {
  %part = memref.subview %x[0, 1] [16, 32] [1, 1] : memref<16x33xf16> to memref<16x32xf16, strided<[33, 1], offset: 1>>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%part : memref<16x32xf16, strided<[33, 1], offset: 1>>) outs(%z : memref<16x32xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
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

// A warp reduces two columns: each lane folds every 32nd row of them, by vectors, and then the lanes their results.
//
// CHECK-LABEL: func.func @columns(
// CHECK: arith.cmpi ult, %{{.*}}, %c5 : index
// CHECK: [[lanes:%.+]]:2 = scf.for %[[row:.+]] = %{{.*}} to %c100 step %c32 iter_args([[first:%.+]] = %{{.*}}, [[second:%.+]] = %
// CHECK: [[pair:%.+]] = vector.load %x[%[[row]], %{{.*}}] {alignment = 8 : i64} : memref<100x10xf32>, vector<2xf32>
// CHECK: [[x:%.+]] = vector.extract [[pair]][0]
// CHECK: arith.maximumf [[first]], [[x]]
// CHECK: [[y:%.+]] = vector.extract [[pair]][1]
// CHECK: arith.maximumf [[second]], [[y]]
// CHECK: gpu.shuffle xor [[lanes]]#0
// CHECK: gpu.shuffle xor [[lanes]]#1
// CHECK: arith.cmpi eq, %{{.*}}, %c0
// CHECK-COUNT-2: memref.load %begin[
// CHECK: vector.store %{{.*}}, %y[{{.*}}] {alignment = 8 : i64} : memref<10xf32>, vector<2xf32>
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

// A thread reduces one of many columns, whose neighbours read neighbours, and one of a few rows.
//
// CHECK-LABEL: func.func @many_columns(
// CHECK: memref.load %begin[
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1 iter_args
// CHECK: memref.load %x[
// CHECK: arith.maximumf
// CHECK-NOT: gpu.shuffle
// CHECK: memref.store
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @many_columns(%x: memref<32x262144xf32>, %begin: memref<262144xf32>, %y: memref<262144xf32>) {
  memref.copy %begin, %y : memref<262144xf32> to memref<262144xf32>
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<32x262144xf32>) outs(%y : memref<262144xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// CHECK-LABEL: func.func @few_rows(
// CHECK: scf.for %{{.*}} = %c0 to %c31 step %c1 iter_args
// CHECK-NOT: gpu.shuffle
// CHECK: memref.store
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @few_rows(%x: memref<31x10xf32>, %begin: memref<10xf32>, %y: memref<10xf32>) {
  memref.copy %begin, %y : memref<10xf32> to memref<10xf32>
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<31x10xf32>) outs(%y : memref<10xf32>) {
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

// Rows of an odd number of elements are no vectors: a thread computes four elements, which it loads before it stores
// one; the last threads have fewer.
// CHECK-LABEL: func.func @odd_rows(
// CHECK: gpu.launch blocks({{.*}} = %c1024, {{.*}} threads({{.*}} = %c256,
// CHECK: [[first:%.+]] = affine.apply
// CHECK: [[last:%.+]] = affine.apply
// CHECK: [[is_whole:%.+]] = arith.cmpi ult, [[last]], %c1048575
// CHECK: scf.if [[is_whole]] {
// CHECK-COUNT-4: memref.load %x
// CHECK-NOT: memref.load
// CHECK-COUNT-4: memref.store
// CHECK: } else {
// CHECK: scf.for %{{.+}} = [[first]] to %c1048575 step %c256
// CHECK: memref.load %x
// CHECK: memref.store
#all = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @odd_rows(%x: memref<1025x1023xf32>, %b: memref<1023xf32>, %y: memref<1025x1023xf32>) {
  linalg.generic {indexing_maps = [#columns, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%b, %x : memref<1023xf32>, memref<1025x1023xf32>) outs(%y : memref<1025x1023xf32>) {
  ^bb0(%bias: f32, %in: f32, %out: f32):
    %v = arith.addf %in, %bias : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// A pooling: neighbouring threads reduce windows of neighbouring channels; the operand with the extents of a window is
// not read.
// CHECK-LABEL: func.func @pooled(
// CHECK-NOT: gpu.shuffle
// CHECK: scf.for {{.*}} to %c49 step %c1
// CHECK: memref.load %x
// CHECK-NOT: memref.load
// CHECK: arith.maximumf
// CHECK-NOT: gpu.shuffle
// CHECK: return
#window = affine_map<(n, c, i, j) -> (i, j)>
#result = affine_map<(n, c, i, j) -> (n, c)>
func.func @pooled(%x: memref<512x7x7x64xf32>, %w: memref<7x7xf32>, %y: memref<512x64xf32>) {
  %low = arith.constant 0xFF800000 : f32
  linalg.fill ins(%low : f32) outs(%y : memref<512x64xf32>)
  linalg.generic {indexing_maps = [#window, #result],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%w : memref<7x7xf32>) outs(%y : memref<512x64xf32>) {
  ^bb0(%none: f32, %out: f32):
    %n = linalg.index 0 : index
    %c = linalg.index 1 : index
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %in = memref.load %x[%n, %i, %j, %c] : memref<512x7x7x64xf32>
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  }
  return
}

// -----

// The lanes of a warp find the first of the largest values: each of every 32nd one, and then of two lanes the one with
// the larger value, or with the lower index of equal ones. An extremum that is NaN is computed again, one value after the
// other.
// CHECK-LABEL: func.func @argmax(
// CHECK: gpu.launch blocks({{.*}} = %c1, {{.*}} threads({{.*}} = %c256,
// CHECK: [[found:%.+]]:2 = scf.for [[at:%.+]] = %{{.*}} to %c100 step %c32 iter_args([[most:%.+]] = %{{.*}}, [[where:%.+]] = %c-1_i32) -> (f32, i32)
// CHECK: [[x:%.+]] = memref.load %x[%{{.*}}, [[at]]]
// CHECK: [[is:%.+]] = arith.cmpf ogt, [[x]], [[most]] : f32
// CHECK: [[own:%.+]] = arith.index_cast [[at]] : index to i32
// CHECK: arith.select [[is]], [[own]], [[where]] : i32
// CHECK: arith.maximumf [[most]], [[x]] : f32
// CHECK: [[other:%.+]], %{{.+}} = gpu.shuffle xor [[found]]#0, %c16_i32, %c32_i32
// CHECK: [[further:%.+]], %{{.+}} = gpu.shuffle xor [[found]]#1, %c16_i32, %c32_i32
// CHECK-DAG: [[more:%.+]] = arith.cmpf ogt, [[other]], [[found]]#0
// CHECK-DAG: [[equal:%.+]] = arith.cmpf oeq, [[other]], [[found]]#0
// CHECK-DAG: [[lower:%.+]] = arith.cmpi ult, [[further]], [[found]]#1
// CHECK: [[both:%.+]] = arith.andi [[equal]], [[lower]]
// CHECK: arith.ori [[more]], [[both]]
// CHECK-COUNT-8: gpu.shuffle xor
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

// The last of equal ones: the higher index, of lanes that have one.
// CHECK-LABEL: func.func @last(
// CHECK: arith.cmpf oge, %{{.*}}, %{{.*}} : f32
// CHECK: gpu.shuffle xor
// CHECK: arith.cmpf ogt,
// CHECK: [[equal:%.+]] = arith.cmpf oeq,
// CHECK: [[higher:%.+]] = arith.cmpi sgt,
// CHECK: arith.andi [[equal]], [[higher]]
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

// Of many values, the threads of a block find it, each of eight at once; warps exchange theirs through shared memory.
// CHECK-LABEL: func.func @long(
// CHECK: gpu.launch blocks({{.*}} = %c3, {{.*}} threads({{.*}} = %c256,
// CHECK: scf.for {{.*}} to %c4096 step %c2048
// CHECK-COUNT-8: memref.load %x
// CHECK: scf.for {{.*}} to %c5000 step %c256
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK-COUNT-16: memref.load %{{.*}} #gpu.address_space<workgroup>>
// CHECK: arith.cmpf uno,
#both = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @long(%x: memref<3x5000xf32>, %value: memref<3xf32>, %place: memref<3xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  linalg.fill ins(%low : f32) outs(%value : memref<3xf32>)
  linalg.fill ins(%none : i64) outs(%place : memref<3xi64>)
  linalg.generic {indexing_maps = [#both, #first, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x5000xf32>) outs(%value, %place : memref<3xf32>, memref<3xi64>) {
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

// A start that is NaN gives way to the first value, which did not exceed it: threads cannot begin from it each.
// CHECK-LABEL: func.func @from_nan(
// CHECK-NOT: gpu.shuffle
// CHECK: return
#both = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @from_nan(%x: memref<8x100xf32>, %value: memref<8xf32>, %place: memref<8xi64>) {
  %nan = arith.constant 0x7FC00000 : f32
  %none = arith.constant 0 : i64
  linalg.fill ins(%nan : f32) outs(%value : memref<8xf32>)
  linalg.fill ins(%none : i64) outs(%place : memref<8xi64>)
  linalg.generic {indexing_maps = [#both, #first, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x100xf32>) outs(%value, %place : memref<8xf32>, memref<8xi64>) {
  ^bb0(%in: f32, %most: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %more = arith.maxnumf %in, %most : f32
    %is = arith.cmpf ogt, %in, %most : f32
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f32, i64
  }
  return
}

// -----

// What a NaN takes part in: a thread computes each.
// CHECK-LABEL: func.func @unordered(
// CHECK-NOT: gpu.shuffle
// CHECK: // -----
#both = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @unordered(%x: memref<8x100xf32>, %value: memref<8xf32>, %place: memref<8xi64>) {
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
    %is = arith.cmpf ugt, %in, %most : f32
    %new = arith.select %is, %here, %at : i64
    linalg.yield %more, %new : f32, i64
  }
  return
}

// -----

// Casts of fp8 stay: lower_fp8_casts lowers them.
// CHECK-LABEL: func.func @widened(
// CHECK: [[F8:%.+]] = memref.load %x[{{.*}}] : memref<10x10xf8E5M2>
// CHECK: [[SINGLE:%.+]] = arith.extf [[F8]] : f8E5M2 to f32
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

// -----

// A result that takes the memory of an operand: threads compute the part that is replaced, at a place that is read, and
// nothing reads or writes the rest. A place outside of the result is none.
// CHECK-LABEL: func.func @replaced(
// CHECK: gpu.launch blocks({{.*}} = %c1, {{.*}} threads({{.*}} = %c256,
// CHECK: arith.cmpi ult, {{.*}}, %c128
// CHECK: [[place:%.+]] = memref.load %place{{\[}}[[b:%.+]]]
// CHECK: [[row:%.+]] = arith.index_cast [[place]]
// CHECK: [[inside:%.+]] = arith.cmpi ult, [[row]], %c1000
// CHECK-NEXT: scf.if [[inside]]
// CHECK-NOT: memref.load %old
// CHECK: memref.load %new[
// CHECK: memref.store {{.*}}, %y{{\[}}[[b]], [[row]],
// CHECK-NOT: memref.store
// CHECK: return
#all = affine_map<(b, i, j) -> (b, i, j)>
func.func @replaced(%new: memref<2x64xf16>, %place: memref<2xi64>,
                    %old: memref<2x1000x64xf16> {tf.aliasing_output = 0 : i32}, %y: memref<2x1000x64xf16>) {
  linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b)>, #all, #all],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%new, %place, %old : memref<2x64xf16>, memref<2xi64>, memref<2x1000x64xf16>) outs(%y : memref<2x1000x64xf16>) {
  ^bb0(%n: f16, %p: i64, %o: f16, %out: f16):
    %i = linalg.index 1 : index
    %at = arith.index_cast %i : index to i64
    %is = arith.cmpi eq, %at, %p : i64
    %v = arith.select %is, %n, %o : f16
    linalg.yield %v : f16
  }
  return
}

// -----

// A part whose place differs along the axis that it replaces is no range: all elements are computed.
// CHECK-LABEL: func.func @masked(
// CHECK-DAG: memref.load %old[
// CHECK-DAG: memref.load %mask[
// CHECK: memref.store
#all = affine_map<(i) -> (i)>
func.func @masked(%new: memref<64xf16>, %mask: memref<64xi64>, %old: memref<64xf16> {tf.aliasing_output = 0 : i32},
                  %y: memref<64xf16>) {
  linalg.generic {indexing_maps = [#all, #all, #all, #all], iterator_types = ["parallel"]}
      ins(%new, %mask, %old : memref<64xf16>, memref<64xi64>, memref<64xf16>) outs(%y : memref<64xf16>) {
  ^bb0(%n: f16, %p: i64, %o: f16, %out: f16):
    %i = linalg.index 0 : index
    %at = arith.index_cast %i : index to i64
    %is = arith.cmpi eq, %at, %p : i64
    %v = arith.select %is, %n, %o : f16
    linalg.yield %v : f16
  }
  return
}

// -----

// A reduction whose body does not read the result so far, as where a fold has become a constant.
// CHECK-LABEL: func.func @constant(
// CHECK: memref.store {{.*}}, %y[
#all = affine_map<(i, j) -> (j, i)>
#kept = affine_map<(i, j) -> (i)>
func.func @constant(%x: memref<8x5xi32>, %y: memref<5xi32>) {
  %zero = arith.constant 0 : i32
  linalg.generic {indexing_maps = [#all, #kept], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x5xi32>) outs(%y : memref<5xi32>) {
  ^bb0(%v: i32, %out: i32):
    linalg.yield %zero : i32
  }
  return
}

// -----

// An extremum that selects its index and is no result itself is not stored.
// CHECK-LABEL: func.func @index_alone(
// CHECK-COUNT-1: memref.store {{.*}}, %index[
// CHECK-NOT: memref.store
// CHECK: return
#all = affine_map<(i, j) -> (j, i)>
#kept = affine_map<(i, j) -> (i)>
func.func @index_alone(%x: memref<8x160xf32>, %index: memref<160xi32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %most = memref.alloc() : memref<5x32xf32>
  linalg.fill ins(%low : f32) outs(%most : memref<5x32xf32>)
  linalg.fill ins(%zero : i32) outs(%index : memref<160xi32>)
  %view = memref.collapse_shape %most [[0, 1]] : memref<5x32xf32> into memref<160xf32>
  linalg.generic {indexing_maps = [#all, #kept, #kept], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x160xf32>) outs(%view, %index : memref<160xf32>, memref<160xi32>) {
  ^bb0(%v: f32, %m: f32, %at: i32):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i32
    %is = arith.cmpf ogt, %v, %m : f32
    %more = arith.maximumf %v, %m : f32
    %new = arith.select %is, %here, %at : i32
    linalg.yield %more, %new : f32, i32
  }
  return
}

// -----

#all = affine_map<(i) -> (i)>
func.func @no_such_result(%old: memref<64xf16> {tf.aliasing_output = 3 : i32}, %y: memref<64xf16>) {
  // expected-error@+1 {{tc.distribute_elements: argument 0 gives its memory to result 3; accepted: results below 1}}
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]}
      ins(%old : memref<64xf16>) outs(%y : memref<64xf16>) {
  ^bb0(%o: f16, %out: f16):
    %v = arith.negf %o : f16
    linalg.yield %v : f16
  }
  return
}

// -----

// A concatenation: its boundary is a multiple of the eight neighbours that a thread computes, so that all of them are of
// one operand. An element of each operand is read, where the index is clamped, but by vectors, and conditions are computed
// once.
//
// CHECK-LABEL: func.func @concatenation(
// CHECK: [[first:%.+]] = arith.cmpi ult, %{{.*}}, %c40
// CHECK: [[second:%.+]] = arith.cmpi ult, %{{.*}}, %c24
// CHECK: [[a:%.+]] = vector.load %a[{{.*}}] {alignment = 16 : i64} : memref<65536x40xf16>, vector<8xf16>
// CHECK: [[b:%.+]] = vector.load %b[{{.*}}] {alignment = 16 : i64} : memref<65536x24xf16>, vector<8xf16>
// CHECK: [[b7:%.+]] = vector.extract [[b]][7] : f16 from vector<8xf16>
// CHECK-NOT: memref.load
// CHECK-NOT: arith.cmpi
// CHECK: [[z7:%.+]] = arith.select [[second]], [[b7]], %{{.*}} : f16
// CHECK: [[z:%.+]] = vector.from_elements {{.*}}, [[z7]] : vector<8xf16>
// CHECK: vector.store [[z]], %z
// CHECK: // -----
#map = affine_map<(i, j) -> (i, j)>
func.func @concatenation(%a: memref<65536x40xf16>, %b: memref<65536x24xf16>, %z: memref<65536x64xf16>) {
  %c0 = arith.constant 0 : index
  %c24 = arith.constant 24 : index
  %c40 = arith.constant 40 : index
  %zero = arith.constant 0.0 : f16
  linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%z : memref<65536x64xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %first = arith.cmpi ult, %j, %c40 : index
    %0 = arith.select %first, %j, %c0 : index
    %x = memref.load %a[%i, %0] : memref<65536x40xf16>
    %1 = arith.select %first, %x, %zero : f16
    %2 = arith.subi %j, %c40 : index
    %second = arith.cmpi ult, %2, %c24 : index
    %3 = arith.select %second, %2, %c0 : index
    %y = memref.load %b[%i, %3] : memref<65536x24xf16>
    %4 = arith.select %second, %y, %1 : f16
    linalg.yield %4 : f16
  }
  return
}

// -----

// The boundary is a multiple of four: of eight neighbours, four are one vector.
//
// CHECK-LABEL: func.func @halves_of_vectors(
// CHECK-COUNT-2: vector.load %a[{{.*}}] {alignment = 8 : i64} : memref<65536x20xf16>, vector<4xf16>
// CHECK-NOT: memref.load
// CHECK: vector.store {{.*}} : memref<65536x64xf16>, vector<8xf16>
// CHECK: // -----
#map = affine_map<(i, j) -> (i, j)>
func.func @halves_of_vectors(%a: memref<65536x20xf16>, %z: memref<65536x64xf16>) {
  %c0 = arith.constant 0 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f16
  linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%z : memref<65536x64xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %first = arith.cmpi ult, %j, %c20 : index
    %0 = arith.select %first, %j, %c0 : index
    %x = memref.load %a[%i, %0] : memref<65536x20xf16>
    %minus = arith.negf %x : f16
    %1 = arith.select %first, %minus, %zero : f16
    linalg.yield %1 : f16
  }
  return
}

// -----

// Elements outside of the slice are the first one of %a, and the result has them: none is a vector.
//
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK-NOT: vector.load
// CHECK-COUNT-8: memref.load %a
#map = affine_map<(i, j) -> (i, j)>
func.func @read_elsewhere(%a: memref<65536x40xf16>, %z: memref<65536x64xf16>) {
  %c0 = arith.constant 0 : index
  %c40 = arith.constant 40 : index
  linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%z : memref<65536x64xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %first = arith.cmpi ult, %j, %c40 : index
    %0 = arith.select %first, %j, %c0 : index
    %x = memref.load %a[%i, %0] : memref<65536x40xf16>
    linalg.yield %x : f16
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
func.func @beside_behind(%x: memref<10x10xf16>, %y: memref<10x10xf16>, %z: memref<10x10xf16>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<10x10xf16>) outs(%y : memref<10x10xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  }
  // expected-error@+1 {{tc.distribute_elements: an op beside the one linalg.generic}}
  linalg.transpose ins(%x : memref<10x10xf16>) outs(%z : memref<10x10xf16>) permutation = [1, 0]
  return
}

// -----

// An op of one iteration may fold to a copy.
// CHECK-LABEL: func.func @copied(
// CHECK: gpu.launch
// CHECK: [[x:%.+]] = memref.load %x[
// CHECK: memref.store [[x]], %y[
func.func @copied(%x: memref<3x5xf32>, %y: memref<3x5xf32>) {
  memref.copy %x, %y : memref<3x5xf32> to memref<3x5xf32>
  return
}
