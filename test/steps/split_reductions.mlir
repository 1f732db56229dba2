// Reductions with few results and many terms become two; short ones, many, and those of other bodies stay.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step split_reductions --split-input-file \
// RUN:   | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>

// Rows of the matrix, or several of them, are the parts. The second reduction begins from the number of the first.
// CHECK-LABEL: func.func @sum(
// CHECK: %[[one:.+]] = arith.constant 1.0
// CHECK: %[[start:.+]] = linalg.fill ins(%[[one]]
// CHECK: %[[rows:.+]] = tensor.expand_shape %x {{\[}}[0, 1], [2]] {{.*}} into tensor<64x16x2048xf16>
// CHECK: %[[neutral:.+]] = arith.constant -0.0
// CHECK: %[[zeros:.+]] = linalg.fill ins(%[[neutral]] : f32) {{.*}} -> tensor<64xf32>
// CHECK: %[[parts:.+]] = linalg.generic {{.*}} ["parallel", "reduction", "reduction"]{{.*}} ins(%[[rows]]{{.*}} outs(%[[zeros]]
// CHECK: arith.extf
// CHECK: linalg.generic {{.*}} ["reduction"]{{.*}} ins(%[[parts]]{{.*}} outs(%[[start]] : tensor<f32>)
// CHECK-NEXT: ^bb0(%[[part:.+]]: f32, %[[sum:.+]]: f32):
// CHECK-NEXT: arith.addf %[[sum]], %[[part]] : f32
func.func @sum(%x: tensor<1024x2048xf16>) -> tensor<f32> {
  %one = arith.constant 1.0 : f32
  %0 = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%one : f32) outs(%0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<1024x2048xf16>) outs(%start : tensor<f32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    %v = arith.addf %out, %w : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Sums of f16 are f32 until the end; the body may read the index of the loop that is divided.
// CHECK-LABEL: func.func @columns(
// CHECK: tensor.expand_shape %x {{\[}}[0, 1], [2]] output_shape [[[outer:[0-9]+]], [[inner:[0-9]+]], 8]
// CHECK: linalg.generic {{.*}} ["parallel", "reduction", "parallel"]
// CHECK-NEXT: ^bb0(
// CHECK-DAG: %[[i:.+]] = linalg.index 0
// CHECK-DAG: %[[j:.+]] = linalg.index 1
// CHECK-DAG: %[[size:.+]] = arith.constant [[inner]] : index
// CHECK: %[[product:.+]] = arith.muli %[[i]], %[[size]]
// CHECK: arith.addi %[[product]], %[[j]]
// CHECK: } -> tensor<[[outer]]x8xf32>
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]{{.*}} outs(%{{.*}} : tensor<8xf32>)
// CHECK: linalg.generic {{.*}} ["parallel"]{{.*}} ins(%{{.*}} : tensor<8xf32>) outs(%{{.*}} : tensor<8xf16>)
// CHECK: arith.truncf
func.func @columns(%x: tensor<65536x8xf16>) -> tensor<8xf16> {
  %one = arith.constant 1.0 : f16
  %0 = tensor.empty() : tensor<8xf16>
  %start = linalg.fill ins(%one : f16) outs(%0 : tensor<8xf16>) -> tensor<8xf16>
  %s = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<65536x8xf16>) outs(%start : tensor<8xf16>) {
  ^bb0(%in: f16, %out: f16):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f16
    %p = arith.mulf %f, %in : f16
    %v = arith.addf %out, %p : f16
    linalg.yield %v : f16
  } -> tensor<8xf16>
  return %s : tensor<8xf16>
}

// -----

#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// Two results of one op: an image and a channel are a part. What is reduced is a whole loop, and nothing is expanded.
// CHECK-LABEL: func.func @channels(
// CHECK-NOT: tensor.expand_shape
// CHECK: %[[parts:.+]]:2 = linalg.generic {{.*}} ["parallel", "parallel", "reduction", "reduction"]{{.*}} ins(%x
// CHECK: } -> (tensor<64x64xf32>, tensor<64x64xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[parts]]#0 {{.*}}
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[parts]]#1 {{.*}}
// CHECK: arith.maximumf
func.func @channels(%x: tensor<64x64x56x56xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %s:2 = linalg.generic {indexing_maps = [#all, #channel, #channel],
      iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<64x64x56x56xf32>) outs(%zeros, %zeros : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%in: f32, %sum: f32, %max: f32):
    %v = arith.addf %sum, %in : f32
    %a = math.absf %in : f32
    %m = arith.maximumf %max, %a : f32
    linalg.yield %v, %m : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  return %s#0, %s#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>

// Short rows, rows of a prime number of elements, and a body that is no fold: a dot product of differences that grow.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: tensor.expand_shape
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @others(%x: tensor<64x4096xf32>, %y: tensor<1x1000003xf32>, %z: tensor<1024x1024xf32>)
    -> (tensor<64xf32>, tensor<1xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64xf32>
  %1 = tensor.empty() : tensor<1xf32>
  %2 = tensor.empty() : tensor<f32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %one = linalg.fill ins(%zero : f32) outs(%1 : tensor<1xf32>) -> tensor<1xf32>
  %none = linalg.fill ins(%zero : f32) outs(%2 : tensor<f32>) -> tensor<f32>
  %a = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x4096xf32>) outs(%zeros : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<1x1000003xf32>) outs(%one : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<1xf32>
  %c = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
      ins(%z : tensor<1024x1024xf32>) outs(%none : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %h = arith.mulf %out, %out : f32
    %v = arith.addf %h, %in : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  return %a, %b, %c : tensor<64xf32>, tensor<1xf32>, tensor<f32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>

// Rows of three results are no vectors. Neighbouring rows are parts, which are vectors together; so many parts are
// divided again.
// CHECK-LABEL: func.func @narrow(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [{{.*}}, [[count:[0-9]+]], 3] : tensor<1000000x3xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]}
// CHECK-SAME: outs(%{{.*}} : tensor<[[count]]x3xf32>)
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape [{{.*}}, [[fewer:[0-9]+]], 3] : tensor<[[count]]x3xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]}
// CHECK-SAME: outs(%{{.*}} : tensor<[[fewer]]x3xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]}
// CHECK-SAME: ins(%{{.*}} : tensor<[[fewer]]x3xf32>) outs(%{{.*}} : tensor<3xf32>)
// CHECK-NOT: linalg.generic
func.func @narrow(%x: tensor<1000000x3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
  %a = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<1000000x3xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %a : tensor<3xf32>
}
