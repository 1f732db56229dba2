// What workspaces are written from becomes kernels in front: one each, in vectors, also through reshapes.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step prepare_operands --split-input-file --verify-diagnostics | FileCheck %s

// Weights of i8 with a zero point and a scale for each column: vectors of 8, as results of f16 are stored.
// CHECK-LABEL: func.func @columns(
// CHECK: [[W:%.+]] = memref.alloc() {whole, workspace} : memref<32x64xf16>
// CHECK: gpu.launch_func @columns_prepare_0::@columns_prepare_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK-SAME: args(%Q : memref<32x64xi8>, %Z : memref<i8>, %S : memref<64xf16>, [[W]] : memref<32x64xf16>)
// CHECK: [[B:%.+]] = bufferization.to_tensor [[W]] restrict
// CHECK-NOT: linalg.generic
// CHECK: linalg.matmul ins(%{{.*}}, [[B]] :
// CHECK: gpu.func @columns_prepare_0({{.*}}) kernel attributes {{{.*}}workspace}
// CHECK: [[Q:%.+]] = vector.load %{{.*}} {alignment = 8 : i64} : memref<32x64xi8>, vector<8xi8>
// CHECK: memref.load %{{.*}}[] : memref<i8>
// CHECK: arith.subi [[Q]], %{{.*}} : vector<8xi8>
// CHECK: arith.sitofp %{{.*}} : vector<8xi8> to vector<8xf16>
// CHECK: arith.mulf %{{.*}} : vector<8xf16>
// CHECK: vector.store %{{.*}} {alignment = 16 : i64} : memref<32x64xf16>, vector<8xf16>
#whole = affine_map<(k, n) -> (k, n)>
#column = affine_map<(k, n) -> (n)>
#one = affine_map<(k, n) -> ()>
func.func @columns(%A: memref<64x32xf16>, %Q: memref<32x64xi8>, %Z: memref<i8>, %S: memref<64xf16>, %C: memref<64x64xf32>) {
  %w = memref.alloc() {whole, workspace} : memref<32x64xf16>
  %q = bufferization.to_tensor %Q restrict : memref<32x64xi8> to tensor<32x64xi8>
  %z = bufferization.to_tensor %Z restrict : memref<i8> to tensor<i8>
  %s = bufferization.to_tensor %S restrict : memref<64xf16> to tensor<64xf16>
  %e = tensor.empty() : tensor<32x64xi8>
  %h = tensor.empty() : tensor<32x64xf16>
  %centred = linalg.generic {indexing_maps = [#whole, #one, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%q, %z : tensor<32x64xi8>, tensor<i8>) outs(%e : tensor<32x64xi8>) {
  ^bb0(%x: i8, %zero: i8, %out: i8):
    %y = arith.subi %x, %zero : i8
    linalg.yield %y : i8
  } -> tensor<32x64xi8>
  %weights = linalg.generic {indexing_maps = [#whole, #column, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%centred, %s : tensor<32x64xi8>, tensor<64xf16>) outs(%h : tensor<32x64xf16>) {
  ^bb0(%x: i8, %scale: f16, %out: f16):
    %y = arith.sitofp %x : i8 to f16
    %r = arith.mulf %y, %scale : f16
    linalg.yield %r : f16
  } -> tensor<32x64xf16>
  bufferization.materialize_in_destination %weights in restrict writable %w : (tensor<32x64xf16>, memref<32x64xf16>) -> ()
  %b = bufferization.to_tensor %w restrict : memref<32x64xf16> to tensor<32x64xf16>
  %a = bufferization.to_tensor %A restrict : memref<64x32xf16> to tensor<64x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x64xf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}

// -----

// Numbers of 4 bits, two in a byte, with a scale for each group of rows: the workspace has the extents of the matrix, and
// what is not fused through the reshapes is computed where it is read. The index of a vector's elements is one number.
// CHECK-LABEL: func.func @groups(
// CHECK: [[W:%.+]] = memref.alloc() {whole, workspace} : memref<64x64xf16>
// CHECK: [[V:%.+]] = memref.expand_shape [[W]] {{.*}} : memref<64x64xf16> into memref<2x32x64xf16>
// CHECK: gpu.launch_func @groups_prepare_0::@groups_prepare_0
// CHECK-SAME: args(%Q : memref<32x64xi8>, %S : memref<2x64xf16>, [[V]] : memref<2x32x64xf16>)
// CHECK-NOT: gpu.launch_func
// CHECK: bufferization.to_tensor [[W]] restrict : memref<64x64xf16>
// CHECK: gpu.func @groups_prepare_0(
// CHECK: vector.load %{{.*}} : memref<32x64xi8>, vector<8xi8>
// CHECK: vector.broadcast %{{.*}} : i8 to vector<8xi8>
// CHECK: arith.shrsi %{{.*}} : vector<8xi8>
// CHECK: vector.store %{{.*}} : memref<2x32x64xf16>, vector<8xf16>
#read = affine_map<(k, t, n) -> (k, n)>
#all = affine_map<(k, t, n) -> (k, t, n)>
func.func @groups(%A: memref<64x64xf16>, %Q: memref<32x64xi8>, %S: memref<2x64xf16>, %C: memref<64x64xf32>) {
  %w = memref.alloc() {whole, workspace} : memref<2x32x64xf16>
  %four = arith.constant 4 : i8
  %q = bufferization.to_tensor %Q restrict : memref<32x64xi8> to tensor<32x64xi8>
  %s = bufferization.to_tensor %S restrict : memref<2x64xf16> to tensor<2x64xf16>
  %e = tensor.empty() : tensor<32x2x64xi8>
  %h = tensor.empty() : tensor<2x32x64xf16>
  %unpacked = linalg.generic {indexing_maps = [#read, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%q : tensor<32x64xi8>) outs(%e : tensor<32x2x64xi8>) {
  ^bb0(%x: i8, %out: i8):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i8
    %skipped = arith.muli %j, %four : i8
    %left = arith.subi %four, %skipped : i8
    %high = arith.shli %x, %left : i8
    %y = arith.shrsi %high, %four : i8
    linalg.yield %y : i8
  } -> tensor<32x2x64xi8>
  %rows = tensor.collapse_shape %unpacked [[0, 1], [2]] : tensor<32x2x64xi8> into tensor<64x64xi8>
  %grouped = tensor.expand_shape %rows [[0, 1], [2]] output_shape [2, 32, 64] : tensor<64x64xi8> into tensor<2x32x64xi8>
  %weights = linalg.generic {indexing_maps = [#all, #read, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%grouped, %s : tensor<2x32x64xi8>, tensor<2x64xf16>) outs(%h : tensor<2x32x64xf16>) {
  ^bb0(%x: i8, %scale: f16, %out: f16):
    %y = arith.sitofp %x : i8 to f16
    %r = arith.mulf %y, %scale : f16
    linalg.yield %r : f16
  } -> tensor<2x32x64xf16>
  bufferization.materialize_in_destination %weights in restrict writable %w : (tensor<2x32x64xf16>, memref<2x32x64xf16>) -> ()
  %view = memref.collapse_shape %w [[0, 1], [2]] : memref<2x32x64xf16> into memref<64x64xf16>
  %b = bufferization.to_tensor %view restrict : memref<64x64xf16> to tensor<64x64xf16>
  %a = bufferization.to_tensor %A restrict : memref<64x64xf16> to tensor<64x64xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}

// -----

// Rows of an odd number of elements: a thread computes one, and threads beyond the last do nothing.
// CHECK-LABEL: func.func @odd(
// CHECK: gpu.launch_func @odd_prepare_0::@odd_prepare_0
// CHECK: gpu.func @odd_prepare_0(
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: memref.load %{{.*}} : memref<41x31xf32>
// CHECK: arith.maximumf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: memref.store %{{.*}} : memref<31x41xf16>
#plain = affine_map<(m, k) -> (m, k)>
#turned = affine_map<(m, k) -> (k, m)>
func.func @odd(%A: memref<41x31xf32>, %B: memref<41x64xf16>, %C: memref<31x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = memref.alloc() {whole, workspace} : memref<31x41xf16>
  %x = bufferization.to_tensor %A restrict : memref<41x31xf32> to tensor<41x31xf32>
  %e = tensor.empty() : tensor<31x41xf16>
  %made = linalg.generic {indexing_maps = [#turned, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<41x31xf32>) outs(%e : tensor<31x41xf16>) {
  ^bb0(%in: f32, %out: f16):
    %y = arith.maximumf %in, %zero : f32
    %r = arith.truncf %y : f32 to f16
    linalg.yield %r : f16
  } -> tensor<31x41xf16>
  bufferization.materialize_in_destination %made in restrict writable %w : (tensor<31x41xf16>, memref<31x41xf16>) -> ()
  %a = bufferization.to_tensor %w restrict : memref<31x41xf16> to tensor<31x41xf16>
  %b = bufferization.to_tensor %B restrict : memref<41x64xf16> to tensor<41x64xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<31x64xf32> to tensor<31x64xf32>
  %d = linalg.matmul ins(%a, %b : tensor<31x41xf16>, tensor<41x64xf16>) outs(%c : tensor<31x64xf32>) -> tensor<31x64xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<31x64xf32>, memref<31x64xf32>) -> ()
  return
}

// -----

// Without workspaces the step changes nothing.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func @plain(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x32xf16> to tensor<64x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<32x64xf16> to tensor<32x64xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x64xf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}

// -----

// A sum begins with a constant.
#matrix = affine_map<(m, k) -> (m, k)>
#row = affine_map<(m, k) -> (m)>
func.func @reduces(%A: memref<64x32xf16>) {
  %w = memref.alloc() {whole, workspace} : memref<64xf16>
  %x = bufferization.to_tensor %A restrict : memref<64x32xf16> to tensor<64x32xf16>
  %e = tensor.empty() : tensor<64xf16>
  // expected-error@+1 {{tc.prepare_operands: expected i32 sums or products with a constant initial value}}
  %made = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x32xf16>) outs(%e : tensor<64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %y = arith.addf %in, %out : f16
    linalg.yield %y : f16
  } -> tensor<64xf16>
  bufferization.materialize_in_destination %made in restrict writable %w : (tensor<64xf16>, memref<64xf16>) -> ()
  return
}

// -----

// The body takes a number of the function.
#matrix = affine_map<(m, k) -> (m, k)>
func.func @outside(%n: f16, %A: memref<64x32xf16>) {
  %w = memref.alloc() {whole, workspace} : memref<64x32xf16>
  %x = bufferization.to_tensor %A restrict : memref<64x32xf16> to tensor<64x32xf16>
  %e = tensor.empty() : tensor<64x32xf16>
  // expected-error@+1 {{tc.prepare_operands: the body captures a value that is not a constant}}
  %made = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x32xf16>) outs(%e : tensor<64x32xf16>) {
  ^bb0(%in: f16, %out: f16):
    %y = arith.mulf %in, %n : f16
    linalg.yield %y : f16
  } -> tensor<64x32xf16>
  bufferization.materialize_in_destination %made in restrict writable %w : (tensor<64x32xf16>, memref<64x32xf16>) -> ()
  return
}

// -----

// A workspace is written from an op that is none of linalg's.
func.func @other(%A: memref<64x32xf16>) {
  %w = memref.alloc() {whole, workspace} : memref<32x32xf16>
  %x = bufferization.to_tensor %A restrict : memref<64x32xf16> to tensor<64x32xf16>
  // expected-error@+1 {{tc.prepare_operands: expected a workspace that is written from a linalg.generic}}
  %part = tensor.extract_slice %x[0, 0] [32, 32] [1, 1] : tensor<64x32xf16> to tensor<32x32xf16>
  bufferization.materialize_in_destination %part in restrict writable %w : (tensor<32x32xf16>, memref<32x32xf16>) -> ()
  return
}

// -----

// An op that changes nothing folds to the buffer, which is copied.
// CHECK-LABEL: func.func @copied(
// CHECK: gpu.launch_func @copied_prepare_0::@copied_prepare_0
// CHECK-NOT: linalg.generic
// CHECK: gpu.func @copied_prepare_0(
// CHECK: [[X:%.+]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<64x32xi8>, vector<16xi8>
// CHECK: vector.store [[X]], %{{.*}} {alignment = 16 : i64} : memref<64x32xi8>, vector<16xi8>
func.func @copied(%A: memref<64x32xi8>) {
  %w = memref.alloc() {whole, workspace} : memref<64x32xi8>
  %x = bufferization.to_tensor %A restrict : memref<64x32xi8> to tensor<64x32xi8>
  bufferization.materialize_in_destination %x in restrict writable %w : (tensor<64x32xi8>, memref<64x32xi8>) -> ()
  return
}

// -----

// Sums of rows, which are neighbours in memory, are computed by a warp each, and those of columns by a thread each; the
// last lanes have no 40th number.
// CHECK-LABEL: func.func @sums(
// CHECK: gpu.launch_func @sums_prepare_0::@sums_prepare_0 blocks in (%c2, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK: gpu.launch_func @sums_prepare_1::@sums_prepare_1 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK-NOT: linalg.generic {{.*}}"reduction"
// CHECK: gpu.func @sums_prepare_0(
// CHECK: affine.for %{{.*}} = 0 to 2 iter_args(
// CHECK: scf.if %{{.*}} -> (i32)
// CHECK: memref.load %{{.*}} : memref<16x40xi8>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: memref.store %{{.*}} : memref<16xi32>
// CHECK: gpu.func @sums_prepare_1(
// CHECK: affine.for %{{.*}} = 0 to 40 iter_args(
// CHECK-NOT: gpu.shuffle
// CHECK: memref.store %{{.*}} : memref<64xi32>
#whole = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
#row = affine_map<(m, n) -> (m)>
#column = affine_map<(m, n) -> (n)>
func.func @sums(%A: memref<16x40xi8>, %B: memref<40x64xi8>, %C: memref<16x64xi32>) {
  %zero = arith.constant 0 : i32
  %v = memref.alloc() {whole, workspace} : memref<16xi32>
  %w = memref.alloc() {whole, workspace} : memref<64xi32>
  %a = bufferization.to_tensor %A restrict : memref<16x40xi8> to tensor<16x40xi8>
  %b = bufferization.to_tensor %B restrict : memref<40x64xi8> to tensor<40x64xi8>
  %e = tensor.empty() : tensor<16xi32>
  %e_zeros = linalg.fill ins(%zero : i32) outs(%e : tensor<16xi32>) -> tensor<16xi32>
  %rows = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<16x40xi8>) outs(%e_zeros : tensor<16xi32>) {
  ^bb0(%x: i8, %out: i32):
    %y = arith.extsi %x : i8 to i32
    %s = arith.addi %out, %y : i32
    linalg.yield %s : i32
  } -> tensor<16xi32>
  %f = tensor.empty() : tensor<64xi32>
  %f_zeros = linalg.fill ins(%zero : i32) outs(%f : tensor<64xi32>) -> tensor<64xi32>
  %columns = linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "reduction"]}
      ins(%b : tensor<40x64xi8>) outs(%f_zeros : tensor<64xi32>) {
  ^bb0(%x: i8, %out: i32):
    %y = arith.extsi %x : i8 to i32
    %s = arith.addi %out, %y : i32
    linalg.yield %s : i32
  } -> tensor<64xi32>
  bufferization.materialize_in_destination %rows in restrict writable %v : (tensor<16xi32>, memref<16xi32>) -> ()
  bufferization.materialize_in_destination %columns in restrict writable %w : (tensor<64xi32>, memref<64xi32>) -> ()
  %r = bufferization.to_tensor %v restrict : memref<16xi32> to tensor<16xi32>
  %l = bufferization.to_tensor %w restrict : memref<64xi32> to tensor<64xi32>
  %c = bufferization.to_tensor %C restrict writable : memref<16x64xi32> to tensor<16x64xi32>
  %p = linalg.matmul ins(%a, %b : tensor<16x40xi8>, tensor<40x64xi8>) outs(%c : tensor<16x64xi32>) -> tensor<16x64xi32>
  %d = linalg.generic {indexing_maps = [#whole, #row, #column, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%p, %r, %l : tensor<16x64xi32>, tensor<16xi32>, tensor<64xi32>) outs(%c : tensor<16x64xi32>) {
  ^bb0(%x: i32, %y: i32, %z: i32, %out: i32):
    %s = arith.subi %x, %y : i32
    %t = arith.subi %s, %z : i32
    linalg.yield %t : i32
  } -> tensor<16x64xi32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<16x64xi32>, memref<16x64xi32>) -> ()
  return
}
