// Elementwise ops fuse with each other and with a reduction; the position of the maximum, which nothing reads, goes. The
// function of a matmul stays as it is.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step fuse_elementwise --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK: [[max:%.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-NOT: arith.select
// CHECK: linalg.generic {{.*}} ins(%arg0, [[max]]
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK-NOT: linalg.generic
// CHECK: func.func private @softmax_matmul_0(
// CHECK: linalg.exp
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @softmax(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {has_stages} {
  %none = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%none : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %2 = tensor.empty() : tensor<8xi64>
  %3 = linalg.fill ins(%first : i64) outs(%2 : tensor<8xi64>) -> tensor<8xi64>
  %max:2 = linalg.generic {indexing_maps = [#map, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%arg0 : tensor<8x16xf32>) outs(%1, %3 : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %m = arith.maximumf %in, %out : f32
    %above = arith.cmpf ogt, %in, %out : f32
    %p = arith.select %above, %n, %at : i64
    linalg.yield %m, %p : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  %4 = tensor.empty() : tensor<8x16xf32>
  %d = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %max#0 : tensor<8x16xf32>, tensor<8xf32>) outs(%4 : tensor<8x16xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %v = arith.subf %in, %m : f32
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  %e = linalg.exp ins(%d : tensor<8x16xf32>) outs(%4 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %e : tensor<8x16xf32>
}
func.func private @softmax_matmul_0(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = tensor.empty() : tensor<8x16xf32>
  %e = linalg.exp ins(%arg0 : tensor<8x16xf32>) outs(%0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %e : tensor<8x16xf32>
}

// -----

// An op that joins two halves computes what both are: nothing else reads them. `linalg.index` of a half is the index of
// the element that is extracted.
// CHECK-LABEL: func.func @rotated(
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x2x8xf32>)
// CHECK-NOT: linalg.generic
// CHECK: [[j:%.+]] = linalg.index 1
// CHECK: [[k:%.+]] = linalg.index 2
// CHECK: [[x:%.+]] = tensor.extract %arg0[{{%.+}}, [[k]]]
// CHECK: [[y:%.+]] = tensor.extract %arg1[[[k]]]
// CHECK: [[first:%.+]] = arith.mulf [[x]], [[y]]
// CHECK: arith.select {{.*}} [[first]]
// CHECK: return
#half = affine_map<(i, j) -> (i, j)>
#whole = affine_map<(i, j, k) -> (i, j, k)>
func.func @rotated(%arg0: tensor<4x8xf32>, %arg1: tensor<8xf32>) -> tensor<4x2x8xf32> attributes {has_stages} {
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<4x8xf32>
  %one = linalg.generic {indexing_maps = [#half, affine_map<(i, j) -> (j)>, #half], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<8xf32>) outs(%0 : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %v = arith.mulf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %other = linalg.generic {indexing_maps = [#half], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<4x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i32
    %v = arith.sitofp %n : i32 to f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %1 = tensor.empty() : tensor<4x2x8xf32>
  %joined = linalg.generic {indexing_maps = [#whole], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%1 : tensor<4x2x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %is_first = arith.cmpi eq, %j, %c0 : index
    %a = tensor.extract %one[%i, %k] : tensor<4x8xf32>
    %b = tensor.extract %other[%i, %k] : tensor<4x8xf32>
    %v = arith.select %is_first, %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x2x8xf32>
  return %joined : tensor<4x2x8xf32>
}

// -----

// A tensor that another op reads too, and one of which far more elements are extracted than it has, are computed once.
// CHECK-LABEL: func.func @kept(
// CHECK: [[read:%.+]] = linalg.generic
// CHECK: [[few:%.+]] = linalg.generic
// CHECK: tensor.extract [[read]][
// CHECK: tensor.extract [[few]][
// CHECK: return {{.*}}, [[read]]
#one = affine_map<(i) -> (i)>
func.func @kept(%arg0: tensor<8xf32>, %arg1: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {has_stages} {
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<8xf32>
  %read = linalg.exp ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %1 = tensor.empty() : tensor<2xf32>
  %few = linalg.exp ins(%arg1 : tensor<2xf32>) outs(%1 : tensor<2xf32>) -> tensor<2xf32>
  %y = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%0 : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %a = tensor.extract %read[%i] : tensor<8xf32>
    %b = tensor.extract %few[%c0] : tensor<2xf32>
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y, %read : tensor<8xf32>, tensor<8xf32>
}

// -----

// What only moves elements, such as a padding, is computed where it is read, by however many elements.
//
// CHECK-LABEL: func.func @padded(
// CHECK-SAME: [[values:%.+]]: tensor<4xf16>
// CHECK: linalg.generic
// CHECK: [[value:%.+]] = tensor.extract [[values]][
// CHECK: arith.select {{%.+}}, [[value]], %{{.+}} : f16
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @padded(%values: tensor<4xf16>) -> tensor<3x4xf16> attributes {has_stages} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<6xf16>
  %pad = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
  } outs(%e : tensor<6xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 0 : index
    %place = arith.subi %i, %c1 : index
    %is_inside = arith.cmpi ult, %place, %c4 : index
    %there = arith.select %is_inside, %place, %c0 : index
    %element = tensor.extract %values[%there] : tensor<4xf16>
    %new = arith.select %is_inside, %element, %zero : f16
    linalg.yield %new : f16
  } -> tensor<6xf16>
  %empty = tensor.empty() : tensor<3x4xf16>
  %windows = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]
  } outs(%empty : tensor<3x4xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %place = arith.addi %i, %j : index
    %element = tensor.extract %pad[%place] : tensor<6xf16>
    linalg.yield %element : f16
  } -> tensor<3x4xf16>
  return %windows : tensor<3x4xf16>
}

// -----

// A factor that is repeated for each head is read where it is extracted, by however many ops, and so is a wider one. An
// op that another one than an extraction reads too stays for that.
// CHECK-LABEL: func.func @repeated(
// CHECK-SAME: [[factors:%.+]]: tensor<8xf16>
// CHECK: [[wide:%.+]] = linalg.generic {{.*}} ins([[factors]] : tensor<8xf16>) outs({{.*}} : tensor<8xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x8xf32>)
// CHECK: [[j:%.+]] = linalg.index 1
// CHECK: [[x:%.+]] = tensor.extract [[factors]][[[j]]]
// CHECK: [[y:%.+]] = arith.extf [[x]]
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK: return {{.*}}, [[wide]]
#one = affine_map<(i) -> (i)>
#half = affine_map<(i, j) -> (i, j)>
func.func @repeated(%factors: tensor<8xf16>) -> (tensor<4x8xf32>, tensor<8xf32>) attributes {has_stages} {
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<8xf32>
  %wide = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%factors : tensor<8xf16>) outs(%0 : tensor<8xf32>) {
  ^bb0(%x: f16, %out: f32):
    %v = arith.extf %x : f16 to f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %1 = tensor.empty() : tensor<4x8xf32>
  %heads = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #half],
      iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<8xf32>) outs(%1 : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#half], iterator_types = ["parallel", "parallel"]} outs(%1 : tensor<4x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = tensor.extract %heads[%i, %j] : tensor<4x8xf32>
    %b = tensor.extract %heads[%i, %c0] : tensor<4x8xf32>
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y, %wide : tensor<4x8xf32>, tensor<8xf32>
}

// -----

// Ops that extract what other extracting ops make are one op, which computes the element at the composed place.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: [[values:%.+]]: tensor<8x8xf32>
// CHECK: linalg.generic
// CHECK: [[value:%.+]] = tensor.extract [[values]][
// CHECK: math.exp [[value]]
// CHECK-NOT: tensor.extract
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @chain(%values: tensor<8x8xf32>) -> tensor<4x4xf32> attributes {has_stages} {
  %made = tensor.empty() : tensor<8x8xf32>
  %exps = linalg.exp ins(%values : tensor<8x8xf32>) outs(%made : tensor<8x8xf32>) -> tensor<8x8xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %rows = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]
  } outs(%empty : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c7 = arith.constant 7 : index
    %last = arith.subi %c7, %i : index
    %element = tensor.extract %exps[%last, %j] : tensor<8x8xf32>
    linalg.yield %element : f32
  } -> tensor<4x4xf32>
  %again = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]
  } outs(%empty : tensor<4x4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c3 = arith.constant 3 : index
    %last = arith.subi %c3, %j : index
    %element = tensor.extract %rows[%i, %last] : tensor<4x4xf32>
    linalg.yield %element : f32
  } -> tensor<4x4xf32>
  return %again : tensor<4x4xf32>
}

// -----

// An op that reads one tensor twice folds to it after CSE, and no kernel is left.

// CHECK-LABEL: func.func @folds_after_cse(
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf16>
// CHECK-NOT: linalg.generic
// CHECK: return %[[X]]
#same = affine_map<(d0, d1) -> (d0, d1)>
func.func @folds_after_cse(%x: tensor<8x16xf16>) -> tensor<8x16xf16> attributes {has_stages} {
  %e = tensor.empty() : tensor<8x16xf16>
  %y = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<8x16xf16>, tensor<8x16xf16>) outs(%e : tensor<8x16xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %wide_a = arith.extf %a : f16 to f32
    %wide_b = arith.extf %b : f16 to f32
    %largest = arith.maximumf %wide_a, %wide_b : f32
    %rounded = arith.truncf %largest : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<8x16xf16>
  return %y : tensor<8x16xf16>
}

// -----

// Positions that a mask compares with each other, and the mask, which two ops read, are computed by both of them. A
// sine, which two ops read, stays an op.
// CHECK-LABEL: func.func @masked(
// CHECK: [[sine:%.+]] = linalg.generic {{.*}} iterator_types = ["parallel"]} outs(
// CHECK: math.sin
// CHECK: linalg.generic {{.*}} ins(%arg0 :
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK: linalg.generic {{.*}} ins(%arg0, [[sine]] :
// CHECK-NOT: math.sin
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK-NOT: linalg.generic
// CHECK: return
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @masked(%arg0: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8x8xf32>, tensor<8xf32>) attributes {has_stages} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xi64>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%0 : tensor<8xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<8xi64>
  %columns = tensor.expand_shape %1 [[0, 1]] output_shape [1, 8] : tensor<8xi64> into tensor<1x8xi64>
  %rows = tensor.expand_shape %1 [[0, 1]] output_shape [8, 1] : tensor<8xi64> into tensor<8x1xi64>
  %2 = tensor.empty() : tensor<8x8xi1>
  %mask = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, 0)>, #map],
      iterator_types = ["parallel", "parallel"]}
      ins(%columns, %rows : tensor<1x8xi64>, tensor<8x1xi64>) outs(%2 : tensor<8x8xi1>) {
  ^bb0(%j: i64, %i: i64, %out: i1):
    %t = arith.cmpi sle, %j, %i : i64
    linalg.yield %t : i1
  } -> tensor<8x8xi1>
  %3 = tensor.empty() : tensor<8xf32>
  %sine = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%3 : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %x = arith.sitofp %n : i32 to f32
    %s = math.sin %x : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<8xf32>) -> tensor<8xf32>
  %5 = tensor.empty() : tensor<8x8xf32>
  %chosen = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %arg0 : tensor<8x8xi1>, tensor<8x8xf32>) outs(%5 : tensor<8x8xf32>) {
  ^bb0(%t: i1, %x: f32, %out: f32):
    %y = arith.select %t, %x, %zero : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%chosen : tensor<8x8xf32>) outs(%4 : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %out : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %other = linalg.generic {indexing_maps = [#map, #map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %arg0, %sine : tensor<8x8xi1>, tensor<8x8xf32>, tensor<8xf32>) outs(%5 : tensor<8x8xf32>) {
  ^bb0(%t: i1, %x: f32, %s: f32, %out: f32):
    %p = arith.negf %s : f32
    %y = arith.select %t, %x, %p : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  return %sum, %other, %sine : tensor<8xf32>, tensor<8x8xf32>, tensor<8xf32>
}

// -----

// A mask of an arange that a matmul reads, and no elementwise op, is one op too.
// CHECK-LABEL: func.func @masked_scores(
// CHECK: [[mask:%.+]] = linalg.generic {{.*}} outs(
// CHECK: linalg.index 0
// CHECK: linalg.index 1
// CHECK-NOT: linalg.generic
// CHECK: call @masked_scores_matmul_0(%arg0, [[mask]])
#map = affine_map<(i, j) -> (i, j)>
func.func @masked_scores(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {has_stages} {
  %0 = tensor.empty() : tensor<8xi64>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%0 : tensor<8xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<8xi64>
  %columns = tensor.expand_shape %1 [[0, 1]] output_shape [1, 8] : tensor<8xi64> into tensor<1x8xi64>
  %rows = tensor.expand_shape %1 [[0, 1]] output_shape [8, 1] : tensor<8xi64> into tensor<8x1xi64>
  %2 = tensor.empty() : tensor<8x8xf32>
  %mask = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, 0)>, #map],
      iterator_types = ["parallel", "parallel"]}
      ins(%columns, %rows : tensor<1x8xi64>, tensor<8x1xi64>) outs(%2 : tensor<8x8xf32>) {
  ^bb0(%j: i64, %i: i64, %out: f32):
    %later = arith.cmpi sgt, %j, %i : i64
    %zero = arith.constant 0.0 : f32
    %far = arith.constant -1.0e4 : f32
    %m = arith.select %later, %far, %zero : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %scores = call @masked_scores_matmul_0(%arg0, %mask) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %scores : tensor<8x8xf32>
}
func.func private @masked_scores_matmul_0(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.add ins(%arg0, %arg1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%arg0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Differences from the mean of a column, which two ops read, are computed by both, and so is the mean from its sum.
// CHECK-LABEL: func.func @columns(
// CHECK: [[sums:%.+]] = linalg.generic {{.*}}"reduction", "parallel"{{.*}} ins(%arg0 : tensor<32x8xf32>)
// CHECK: [[squares:%.+]] = linalg.generic {{.*}}"reduction", "parallel"{{.*}} ins(%arg0, [[sums]] :
// CHECK: arith.divf
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: [[result:%.+]] = linalg.generic {{.*}}"parallel", "parallel"{{.*}} ins(%arg0, [[sums]] :
// CHECK: arith.divf
// CHECK: arith.subf
// CHECK-NOT: linalg.generic
// CHECK: return [[squares]], [[result]]
#map = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#vector = affine_map<(j) -> (j)>
func.func @columns(%arg0: tensor<32x8xf32>) -> (tensor<8xf32>, tensor<32x8xf32>) attributes {has_stages} {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 32.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %1 = tensor.empty() : tensor<32x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %sums = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
      ins(%arg0 : tensor<32x8xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.addf %x, %out : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %mean = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%sums : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %m = arith.divf %x, %count : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %difference = linalg.generic {indexing_maps = [#map, #column, #map], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %mean : tensor<32x8xf32>, tensor<8xf32>) outs(%1 : tensor<32x8xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    linalg.yield %d : f32
  } -> tensor<32x8xf32>
  %squares = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
      ins(%difference : tensor<32x8xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.mulf %x, %x : f32
    %s = arith.addf %q, %out : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %result = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%difference : tensor<32x8xf32>) outs(%1 : tensor<32x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<32x8xf32>
  return %squares, %result : tensor<8xf32>, tensor<32x8xf32>
}

// -----

// Halves that are stacked are computed by the op that joins them, as those of interleaved rotary embeddings.
// CHECK-LABEL: func.func @stacked(
// CHECK: linalg.generic
// CHECK-DAG: arith.negf
// CHECK-DAG: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return
#halves = affine_map<(i) -> (i)>
#pairs = affine_map<(i, j) -> (i, j)>
func.func @stacked(%arg0: tensor<8xf32>) -> tensor<8x2xf32> attributes {has_stages} {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<8xf32>
  %1 = tensor.empty() : tensor<8x2xf32>
  %first = linalg.generic {indexing_maps = [#halves, #halves], iterator_types = ["parallel"]}
      ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.negf %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %second = linalg.generic {indexing_maps = [#halves, #halves], iterator_types = ["parallel"]}
      ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %a = tensor.expand_shape %first [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %b = tensor.expand_shape %second [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %joined = linalg.generic {indexing_maps = [#pairs], iterator_types = ["parallel", "parallel"]}
      outs(%1 : tensor<8x2xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %is_first = arith.cmpi ult, %j, %c1 : index
    %x = tensor.extract %a[%i, %c0] : tensor<8x1xf32>
    %y = tensor.extract %b[%i, %c0] : tensor<8x1xf32>
    %z = arith.select %is_first, %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<8x2xf32>
  return %joined : tensor<8x2xf32>
}

// -----

// Named contractions that no matrix unit computes become generic ops.
// CHECK-LABEL: func.func @vectors(
// CHECK-NOT: linalg.vecmat
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-NOT: linalg.batch_reduce_matmul
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel", "reduction"]
func.func @vectors(%x: tensor<8xi64>, %w: tensor<8x16xi64>, %y: tensor<16xi64>, %a: tensor<3x4x8xf32>,
                   %b: tensor<8x16xf32>, %c: tensor<4x16xf32>) -> (tensor<16xi64>, tensor<4x16xf32>)
    attributes {has_stages} {
  %0 = linalg.vecmat ins(%x, %w : tensor<8xi64>, tensor<8x16xi64>) outs(%y : tensor<16xi64>) -> tensor<16xi64>
  %1 = linalg.batch_reduce_matmul
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>,
                       affine_map<(b, m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<3x4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0, %1 : tensor<16xi64>, tensor<4x16xf32>
}
