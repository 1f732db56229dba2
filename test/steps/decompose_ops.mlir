// Arithmetic on whole tensors, a softmax, a concatenation and a padding become linalg ops of one loop nest each. Slices
// whose places are not constant stay.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step decompose_ops --split-input-file \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @rounded(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%x
// CHECK-NEXT: ^bb0([[in:%.+]]: f32, {{.*}}: f16):
// CHECK-NEXT: arith.truncf [[in]] : f32 to f16
// CHECK-NOT: arith.truncf
func.func @rounded(%x: tensor<8x32xf32>) -> tensor<8x32xf16> {
  %h = arith.truncf %x : tensor<8x32xf32> to tensor<8x32xf16>
  return %h : tensor<8x32xf16>
}

// -----

// CHECK-LABEL: func.func @softmax(
// CHECK-NOT: linalg.softmax
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
func.func @softmax(%x: tensor<8x32xf32>, %y: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %s = linalg.softmax dimension(1) ins(%x : tensor<8x32xf32>) outs(%y : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %s : tensor<8x32xf32>
}

// -----

// CHECK-LABEL: func.func @joined(
// CHECK-NOT: tensor.concat
// CHECK: [[first:%.+]] = linalg.generic {{.*}} outs(
// CHECK: [[i:%.+]] = linalg.index 0
// CHECK-NEXT: [[end:%.+]] = arith.constant 8 : index
// CHECK-NEXT: [[inside:%.+]] = arith.cmpi ult, [[i]], [[end]]
// CHECK: tensor.extract %x[
// CHECK: linalg.generic {{.*}} ins([[first]]
// CHECK: ^bb0([[before:%.+]]: f16, {{.*}}: f16):
// CHECK-NEXT: [[j:%.+]] = linalg.index 0
// CHECK-NEXT: [[offset:%.+]] = arith.constant 8 : index
// CHECK-NEXT: [[place:%.+]] = arith.subi [[j]], [[offset]]
// CHECK: [[element:%.+]] = tensor.extract %y[
// CHECK-NEXT: arith.select {{%.+}}, [[element]], [[before]]
// CHECK-NOT: tensor.insert_slice
func.func @joined(%x: tensor<8x32xf16>, %y: tensor<4x32xf16>) -> tensor<12x32xf16> {
  %z = tensor.concat dim(0) %x, %y : (tensor<8x32xf16>, tensor<4x32xf16>) -> tensor<12x32xf16>
  return %z : tensor<12x32xf16>
}

// -----

// CHECK-LABEL: func.func @padded(
// CHECK-NOT: tensor.pad
// CHECK: [[fill:%.+]] = linalg.fill
// CHECK: linalg.generic {{.*}} ins([[fill]]
// CHECK: tensor.extract %x[
func.func @padded(%x: tensor<8x30xf16>) -> tensor<8x32xf16> {
  %none = arith.constant 0.0 : f16
  %z = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %none : f16
  } : tensor<8x30xf16> to tensor<8x32xf16>
  return %z : tensor<8x32xf16>
}

// -----

// CHECK-LABEL: func.func @strided(
// CHECK: [[place:%.+]] = arith.subi {{.*}}, %c1
// CHECK: [[near:%.+]] = arith.cmpi ult, [[place]], %c6
// CHECK: [[rest:%.+]] = arith.remui [[place]], %c2
// CHECK: [[hit:%.+]] = arith.cmpi eq, [[rest]], %c0
// CHECK: [[in:%.+]] = arith.andi [[near]], [[hit]]
// CHECK: [[index:%.+]] = arith.divui [[place]], %c2
// CHECK: [[read:%.+]] = arith.select [[in]], [[index]], %c0
// CHECK: [[new:%.+]] = tensor.extract %x{{\[}}[[read]]]
// CHECK: arith.select [[in]], [[new]]
func.func @strided(%x: tensor<3xf16>, %y: tensor<8xf16>) -> tensor<8xf16> {
  %z = tensor.insert_slice %x into %y[1] [3] [2] : tensor<3xf16> into tensor<8xf16>
  return %z : tensor<8xf16>
}

// -----

// CHECK-LABEL: func.func @elsewhere(
// CHECK: tensor.insert_slice
func.func @elsewhere(%x: tensor<4xf16>, %y: tensor<8xf16>, %i: index) -> tensor<8xf16> {
  %z = tensor.insert_slice %x into %y[%i] [4] [1] : tensor<4xf16> into tensor<8xf16>
  return %z : tensor<8xf16>
}

// -----

// What is inserted into a part of an empty tensor reads nothing of it.
//
// CHECK-LABEL: func.func @partly_empty(
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {indexing_maps = [{{#[a-z0-9]+}}], iterator_types = ["parallel", "parallel"]} outs(
// CHECK: tensor.extract %x[
func.func @partly_empty(%x: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %part = tensor.extract_slice %empty[0, 1] [8, 6] [1, 1] : tensor<8x8xf32> to tensor<8x6xf32>
  %z = tensor.insert_slice %x into %part[1, 0] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<8x6xf32>
  return %z : tensor<8x6xf32>
}

// -----

// Slices of a transpose are transposed slices, of the queries and keys of a projection for example. A transpose with
// other users stays, and so does one whose slices overlap.
//
// CHECK-LABEL: func.func @transposed(
// CHECK: %[[Q:.+]] = tensor.extract_slice %x[0, 0, 0, 0] [32, 1, 4, 16] [1, 1, 1, 1]
// CHECK-SAME: : tensor<32x3x4x16xf16> to tensor<32x4x16xf16>
// CHECK: %[[HEADS:.+]] = linalg.transpose ins(%[[Q]] : tensor<32x4x16xf16>) {{.*}} permutation = [1, 0, 2]
// CHECK: %[[ROWS:.+]] = tensor.extract_slice %x[8, 1, 0, 0] [16, 2, 4, 16] [1, 1, 1, 1]
// CHECK-SAME: : tensor<32x3x4x16xf16> to tensor<16x2x4x16xf16>
// CHECK: %[[MOVED:.+]] = linalg.transpose ins(%[[ROWS]] : {{.*}}) {{.*}} permutation = [1, 2, 0, 3]
// CHECK: %[[HEAD:.+]] = tensor.extract_slice %x[0, 0, 1, 0] [32, 1, 1, 16] [1, 1, 1, 1]
// CHECK-SAME: : tensor<32x3x4x16xf16> to tensor<32x16xf16>
// CHECK-NOT: linalg.transpose
// CHECK: return %[[HEADS]], %[[MOVED]], %[[HEAD]]
func.func @transposed(%x: tensor<32x3x4x16xf16>)
    -> (tensor<4x32x16xf16>, tensor<2x4x16x16xf16>, tensor<32x16xf16>) {
  %e = tensor.empty() : tensor<3x4x32x16xf16>
  %t = linalg.transpose ins(%x : tensor<32x3x4x16xf16>) outs(%e : tensor<3x4x32x16xf16>) permutation = [1, 2, 0, 3]
  %q = tensor.extract_slice %t[0, 0, 0, 0] [1, 4, 32, 16] [1, 1, 1, 1]
    : tensor<3x4x32x16xf16> to tensor<4x32x16xf16>
  %r = tensor.extract_slice %t[1, 0, 8, 0] [2, 4, 16, 16] [1, 1, 1, 1]
    : tensor<3x4x32x16xf16> to tensor<2x4x16x16xf16>
  %h = tensor.extract_slice %t[0, 1, 0, 0] [1, 1, 32, 16] [1, 1, 1, 1] : tensor<3x4x32x16xf16> to tensor<32x16xf16>
  return %q, %r, %h : tensor<4x32x16xf16>, tensor<2x4x16x16xf16>, tensor<32x16xf16>
}

// -----

// CHECK-LABEL: func.func @transposed_as_a_whole(
// CHECK: %[[T:.+]] = linalg.transpose ins(%x
// CHECK: tensor.extract_slice %[[T]][1, 0] [2, 32] [1, 1]
// CHECK: %[[U:.+]] = linalg.transpose ins(%y
// CHECK: tensor.extract_slice %[[U]][0, 0] [3, 32] [1, 1]
// CHECK: tensor.extract_slice %[[U]][1, 0] [3, 32] [1, 1]
func.func @transposed_as_a_whole(%x: tensor<32x4xf16>, %y: tensor<32x4xf16>)
    -> (tensor<4x32xf16>, tensor<2x32xf16>, tensor<3x32xf16>, tensor<3x32xf16>) {
  %e = tensor.empty() : tensor<4x32xf16>
  %t = linalg.transpose ins(%x : tensor<32x4xf16>) outs(%e : tensor<4x32xf16>) permutation = [1, 0]
  %p = tensor.extract_slice %t[1, 0] [2, 32] [1, 1] : tensor<4x32xf16> to tensor<2x32xf16>
  %u = linalg.transpose ins(%y : tensor<32x4xf16>) outs(%e : tensor<4x32xf16>) permutation = [1, 0]
  %q = tensor.extract_slice %u[0, 0] [3, 32] [1, 1] : tensor<4x32xf16> to tensor<3x32xf16>
  %r = tensor.extract_slice %u[1, 0] [3, 32] [1, 1] : tensor<4x32xf16> to tensor<3x32xf16>
  return %t, %p, %q, %r : tensor<4x32xf16>, tensor<2x32xf16>, tensor<3x32xf16>, tensor<3x32xf16>
}

// -----

// A slice of what no insertion has changed is one of the tensor before, or of a filled one a smaller one; a slice of
// what an insertion has changed in part stays.
//
// CHECK-LABEL: func.func @forwarded(
// CHECK: %[[ZEROS:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<2x4xf32>)
// CHECK: %[[LATER:.+]] = tensor.extract_slice %y[4, 0] [2, 4] [1, 1]
// CHECK: %[[PART:.+]] = tensor.extract_slice %{{.+}}[1, 0] [2, 4] [1, 1]
// CHECK: return %[[ZEROS]], %[[LATER]], %x, %[[PART]]
func.func @forwarded(%x: tensor<2x4xf32>, %y: tensor<8x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %a = tensor.insert_slice %x into %z[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
  %b = tensor.insert_slice %x into %y[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
  %c = tensor.insert_slice %x into %b[6, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
  %1 = tensor.extract_slice %a[2, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  %2 = tensor.extract_slice %c[4, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  %3 = tensor.extract_slice %c[0, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  %4 = tensor.extract_slice %c[1, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  return %1, %2, %3, %4 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Results of matmuls that make up a tensor are assembled by a function, which says where each begins, in bytes.
// CHECK-LABEL: func.func @heads(
// CHECK-NOT: tensor.insert_slice
// CHECK: [[h0:%.+]] = linalg.matmul
// CHECK: [[h1:%.+]] = linalg.matmul
// CHECK-NEXT: [[all:%.+]] = call @heads_elementwise_0([[h0]], [[h1]])
// CHECK-NEXT: return [[all]]
// CHECK-LABEL: func.func private @heads_elementwise_0(
// CHECK-SAME: attributes {assembles = array<i64: 0, 4096>}
// CHECK: linalg.generic
// CHECK-COUNT-2: tensor.extract
// CHECK-NOT: tensor.extract
func.func @heads(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf16>) -> tensor<2x32x64xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<32x64xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<32x64xf16>) -> tensor<32x64xf16>
  %h0 = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %h1 = linalg.matmul ins(%a, %c : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %x = tensor.empty() : tensor<2x32x64xf16>
  %y = tensor.insert_slice %h0 into %x[0, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf16> into tensor<2x32x64xf16>
  %r = tensor.insert_slice %h1 into %y[1, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf16> into tensor<2x32x64xf16>
  return %r : tensor<2x32x64xf16>
}

// -----

// Columns are assembled too, with their extents, but not where a matmul reads them; nor is an argument, which no kernel
// computes.
// CHECK-LABEL: func.func @columns(
// CHECK: call @columns_elementwise_0(
// CHECK-LABEL: func.func private @columns_elementwise_0(
// CHECK-SAME: attributes {assembles = array<i64: 0, 128>, extents = [array<i64: 32, 64>, array<i64: 32, 64>]}
func.func @columns(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %z: tensor<32x64xf16>) -> tensor<32x128xf16> {
  %h0 = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %h1 = linalg.matmul ins(%z, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %r = tensor.concat dim(1) %h0, %h1 : (tensor<32x64xf16>, tensor<32x64xf16>) -> tensor<32x128xf16>
  return %r : tensor<32x128xf16>
}

// -----

// CHECK-LABEL: func.func @side_by_side(
// CHECK-NOT: call
func.func @side_by_side(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %z: tensor<32x64xf16>) -> tensor<32x128xf16> {
  %h0 = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %h1 = linalg.matmul ins(%h0, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %x = tensor.empty() : tensor<32x128xf16>
  %y = tensor.insert_slice %h0 into %x[0, 0] [32, 64] [1, 1] : tensor<32x64xf16> into tensor<32x128xf16>
  %r = tensor.insert_slice %h1 into %y[0, 64] [32, 64] [1, 1] : tensor<32x64xf16> into tensor<32x128xf16>
  return %r : tensor<32x128xf16>
}

// -----

// CHECK-LABEL: func.func @argument(
// CHECK-NOT: call
func.func @argument(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %z: tensor<32x64xf16>) -> tensor<2x32x64xf16> {
  %h0 = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %x = tensor.empty() : tensor<2x32x64xf16>
  %y = tensor.insert_slice %h0 into %x[0, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf16> into tensor<2x32x64xf16>
  %r = tensor.insert_slice %a into %y[1, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf16> into tensor<2x32x64xf16>
  return %r : tensor<2x32x64xf16>
}

// -----

// Columns of an argument whose memory the result takes need not be all of it.
//
// CHECK-LABEL: func.func @replaced(
// CHECK: call @replaced_elementwise_0(%whole, {{.*}})
// CHECK-LABEL: func.func private @replaced_elementwise_0(
// CHECK-SAME: tf.aliasing_output = 0 : i32
// CHECK-SAME: attributes {assembles = array<i64: 32>, extents = [array<i64: 32, 64>]}
func.func @replaced(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %z: tensor<32x64xf16>,
    %whole: tensor<32x128xf16> {tf.aliasing_output = 0 : i32}) -> tensor<32x128xf16> {
  %h = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %r = tensor.insert_slice %h into %whole[0, 16] [32, 64] [1, 1] : tensor<32x64xf16> into tensor<32x128xf16>
  return %r : tensor<32x128xf16>
}

// -----

// CHECK-LABEL: func.func @memory_of_its_own(
// CHECK-NOT: call
func.func @memory_of_its_own(%a: tensor<32x64xf16>, %b: tensor<64x64xf16>, %z: tensor<32x64xf16>,
    %whole: tensor<32x128xf16>) -> tensor<32x128xf16> {
  %h = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf16>)
    -> tensor<32x64xf16>
  %r = tensor.insert_slice %h into %whole[0, 16] [32, 64] [1, 1] : tensor<32x64xf16> into tensor<32x128xf16>
  return %r : tensor<32x128xf16>
}

// -----

// A reduction that starts from a constant starts from a fill; an op that does not read it keeps it.
//
// CHECK-LABEL: func.func @from_a_constant(
// CHECK: [[kept:%.+]] = arith.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK: [[lowest:%.+]] = arith.constant 0xFF800000 : f32
// CHECK: [[start:%.+]] = linalg.fill ins([[lowest]] : f32)
// CHECK: linalg.reduce ins(%x : tensor<8x32xf32>) outs([[start]] : tensor<8xf32>)
// CHECK: linalg.map {{.*}} outs([[kept]] : tensor<8xf32>)
func.func @from_a_constant(%x: tensor<8x32xf32>) -> tensor<8xf32> {
  %lowest = arith.constant dense<0xFF800000> : tensor<8xf32>
  %unread = arith.constant dense<0.0> : tensor<8xf32>
  %largest = linalg.reduce ins(%x : tensor<8x32xf32>) outs(%lowest : tensor<8xf32>) dimensions = [1]
    (%in: f32, %so_far: f32) {
      %m = arith.maximumf %in, %so_far : f32
      linalg.yield %m : f32
    }
  %y = linalg.map ins(%largest : tensor<8xf32>) outs(%unread : tensor<8xf32>) (%in: f32, %out: f32) {
    %n = math.exp %in : f32
    linalg.yield %n : f32
  }
  return %y : tensor<8xf32>
}

// -----

// Arithmetic on whole tensors may be between the matmul and the insertion.
//
// CHECK-LABEL: func.func @rounded_row(
// CHECK: call @rounded_row_elementwise_0(%whole, {{.*}})
// CHECK-LABEL: func.func private @rounded_row_elementwise_0(
// CHECK-SAME: tf.aliasing_output = 0 : i32
func.func @rounded_row(%a: tensor<1x64xf16>, %b: tensor<64x32xf16>, %z: tensor<1x32xf32>,
    %whole: tensor<16x32xf16> {tf.aliasing_output = 0 : i32}) -> tensor<16x32xf16> {
  %h = linalg.matmul ins(%a, %b : tensor<1x64xf16>, tensor<64x32xf16>) outs(%z : tensor<1x32xf32>) -> tensor<1x32xf32>
  %rounded = arith.truncf %h : tensor<1x32xf32> to tensor<1x32xf16>
  %r = tensor.insert_slice %rounded into %whole[5, 0] [1, 32] [1, 1] : tensor<1x32xf16> into tensor<16x32xf16>
  return %r : tensor<16x32xf16>
}

// -----

// A matmul of no terms is what it starts from.
// CHECK-LABEL: func.func @no_terms(
// CHECK-NEXT: return %c
func.func @no_terms(%a: tensor<4x0xf16>, %b: tensor<0x8xf16>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<4x0xf16>, tensor<0x8xf16>) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// -----

// A tensor without elements is its start or empty, whatever computes it, and its insertion changes nothing.
// CHECK-LABEL: func.func @no_rows(
// CHECK-NEXT: [[empty:%.+]] = tensor.empty() : tensor<0x8xf32>
// CHECK-NEXT: return %d, [[empty]], %c
func.func @no_rows(%a: tensor<0x4xf16>, %b: tensor<4x8xf16>, %d: tensor<0x8xf32>, %c: tensor<4x8xf32>)
    -> (tensor<0x8xf32>, tensor<0x8xf32>, tensor<4x8xf32>) {
  %p = linalg.matmul ins(%a, %b : tensor<0x4xf16>, tensor<4x8xf16>) outs(%d : tensor<0x8xf32>) -> tensor<0x8xf32>
  %i = tensor.insert_slice %p into %c[2, 0] [0, 8] [1, 1] : tensor<0x8xf32> into tensor<4x8xf32>
  %s = tensor.extract_slice %c[2, 0] [0, 8] [1, 1] : tensor<4x8xf32> to tensor<0x8xf32>
  return %p, %s, %i : tensor<0x8xf32>, tensor<0x8xf32>, tensor<4x8xf32>
}
