// A chain of elementwise ops becomes one op, whose first operand is the product and whose destination is C. What C held
// is read from the destination, and what the product started from is added by the op.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step fuse_consumers --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-DAG: #[[all:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[column:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @chain(
// CHECK-DAG: [[zero:%.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: [[bias:%.+]] = bufferization.to_tensor %bias
// CHECK: [[sums:%.+]] = linalg.matmul
// CHECK: [[c:%.+]] = bufferization.to_tensor %C restrict writable
// CHECK: [[r:%.+]] = linalg.generic {indexing_maps = [#[[all]], #[[column]], #[[all]]]
// CHECK-SAME: ins([[sums]], [[bias]] : tensor<64x32xf32>, tensor<32xf32>) outs([[c]] : tensor<64x32xf32>)
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, [[b:%.+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: [[s:%.+]] = arith.addf [[b]], [[x]] : f32
// CHECK-NEXT: [[m:%.+]] = arith.maximumf [[s]], [[zero]] : f32
// CHECK-NEXT: linalg.yield [[m]] : f32
// CHECK-NOT: linalg
// CHECK: bufferization.materialize_in_destination [[r]] in restrict writable %C
// CHECK: // -----
func.func @chain(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %bias: memref<32xf32>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %v = bufferization.to_tensor %bias restrict : memref<32xf32> to tensor<32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %rows = linalg.broadcast ins(%v : tensor<32xf32>) outs(%e : tensor<64x32xf32>) dimensions = [0]
  %s = linalg.add ins(%rows, %p : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %m = linalg.max ins(%s, %z : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %m in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// The sums start from C: they start from zeros, and the op adds C, which it reads where it writes.
// CHECK-LABEL: func.func @from_c(
// CHECK: [[zeros:%.+]] = linalg.fill
// CHECK: [[sums:%.+]] = linalg.matmul {{.*}} outs([[zeros]] : tensor<64x32xf32>)
// CHECK: linalg.generic {{.*}} ins([[sums]] : tensor<64x32xf32>) outs(%{{.*}} : tensor<64x32xf32>)
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, [[old:%.+]]: f32):
// CHECK-NEXT: [[s:%.+]] = arith.addf [[x]], [[old]] : f32
// CHECK-NEXT: [[t:%.+]] = math.tanh [[s]] : f32
// CHECK: // -----
func.func @from_c(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf32> to tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  %t = linalg.tanh ins(%p : tensor<64x32xf32>) outs(%p : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %t in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// Numbers that are arguments of the function become operands, each once, whether an op takes them as an input, in its
// body, or as what fills a tensor.
// CHECK-DAG: #[[each:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[number:.+]] = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @numbers(
// CHECK: [[sums:%.+]] = linalg.matmul
// CHECK: linalg.generic {indexing_maps = [#[[each]], #[[number]], #[[number]], #[[each]]]
// CHECK-SAME: ins([[sums]], %beta, %alpha : tensor<64x32xf32>, f32, f32)
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, [[beta:%.+]]: f32, [[alpha:%.+]]: f32, [[old:%.+]]: f32):
// CHECK-NEXT: [[ax:%.+]] = arith.mulf [[x]], [[alpha]] : f32
// CHECK-NEXT: [[by:%.+]] = arith.mulf [[old]], [[beta]] : f32
// CHECK-NEXT: [[s:%.+]] = arith.addf [[ax]], [[by]] : f32
// CHECK-NEXT: [[t:%.+]] = arith.minimumf [[s]], [[alpha]] : f32
// CHECK: // -----
func.func @numbers(%alpha: f32, %beta: f32, %A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf32> to tensor<64x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %alphas = linalg.fill ins(%alpha : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %scaled = linalg.mul ins(%p, %alphas : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%scaled, %beta : tensor<64x32xf32>, f32) outs(%c : tensor<64x32xf32>) {
  ^bb0(%x: f32, %w: f32, %old: f32):
    %y = arith.mulf %old, %w : f32
    %s = arith.addf %x, %y : f32
    %t = arith.minimumf %s, %alpha : f32
    linalg.yield %t : f32
  } -> tensor<64x32xf32>
  bufferization.materialize_in_destination %sum in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// Without an elementwise op nothing changes.
// CHECK-LABEL: func.func @product(
// CHECK: [[c:%.+]] = bufferization.to_tensor %C restrict writable
// CHECK-NEXT: [[p:%.+]] = linalg.matmul {{.*}} outs([[c]] : tensor<64x32xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[p]]
// CHECK: // -----
func.func @product(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf32> to tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// Two results of one product: one op makes both, and what both are made of is computed once.
// CHECK-LABEL: func.func @two_results(
// CHECK: [[sums:%.+]] = linalg.matmul
// CHECK-DAG: [[c:%.+]] = bufferization.to_tensor %C restrict writable
// CHECK-DAG: [[d:%.+]] = bufferization.to_tensor %D restrict writable
// CHECK: [[r:%.+]]:2 = linalg.generic
// CHECK-SAME: ins([[sums]] : tensor<64x32xf32>) outs([[c]], [[d]] : tensor<64x32xf32>, tensor<64x32xf32>)
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: [[e:%.+]] = math.exp [[x]] : f32
// CHECK-NEXT: [[t:%.+]] = math.tanh [[e]] : f32
// CHECK-NEXT: linalg.yield [[e]], [[t]] : f32, f32
// CHECK-NOT: linalg
// CHECK: bufferization.materialize_in_destination [[r]]#0 in restrict writable %C
// CHECK: bufferization.materialize_in_destination [[r]]#1 in restrict writable %D
// CHECK: // -----
func.func @two_results(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf32>, %D: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %s = linalg.exp ins(%p : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %t = linalg.tanh ins(%s : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %s in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  bufferization.materialize_in_destination %t in restrict writable %D : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// What is stored beside C is nothing that the product makes.
func.func @no_product(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf32>, %D: memref<64x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %s = linalg.exp ins(%p : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %s in restrict writable %C : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  // expected-error@+1 {{tc.normalize_consumer: expected elementwise ops between linalg.matmul and what is stored}}
  bufferization.materialize_in_destination %z in restrict writable %D : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// -----

// A reduction: the op writes what is folded to a workspace, which a function reduces that is called behind the stores.
// CHECK: func.func private @reduction([[from:%.+]]: memref<64x32xf32>, [[to:%.+]]: memref<64xf32>)
// CHECK: linalg.map outs([[to]] : memref<64xf32>)
// CHECK: linalg.reduce ins([[from]] : memref<64x32xf32>) outs([[to]] : memref<64xf32>) dimensions = [1]
// CHECK-NEXT: (%in: f32, %init: f32) {
// CHECK-NEXT: arith.addf
// CHECK-LABEL: func.func @squares(
// CHECK: [[workspace:%.+]] = memref.alloc() {workspace} : memref<64x32xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<64x32xf16>, tensor<64x32xf32>)
// CHECK-NEXT: ^bb0([[x:%.+]]: f32, %{{.*}}: f16, %{{.*}}: f32):
// CHECK-DAG: [[h:%.+]] = arith.truncf [[x]]
// CHECK-DAG: [[s:%.+]] = arith.mulf [[x]], [[x]]
// CHECK: linalg.yield [[h]], [[s]] : f16, f32
// CHECK: call @reduction([[workspace]], %R) {reduces}
func.func @squares(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf16>, %R: memref<64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf16> to tensor<64x32xf16>
  %r = bufferization.to_tensor %R restrict writable : memref<64xf32> to tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x32xf32>) outs(%c : tensor<64x32xf16>) {
  ^bb0(%x: f32, %y: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x32xf16>
  %f = linalg.fill ins(%zero : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%p : tensor<64x32xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %q = arith.mulf %x, %x : f32
    %t = arith.addf %q, %y : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  bufferization.materialize_in_destination %h in restrict writable %C : (tensor<64x32xf16>, memref<64x32xf16>) -> ()
  bufferization.materialize_in_destination %s in restrict writable %R : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}

// -----

// Results of 16 bits are folded in f32, and rounded once in the epilogue, which takes the place of the function.
// CHECK: func.func private @reduction([[from:%.+]]: memref<64x32xf32>, [[to:%.+]]: memref<32xf16>)
// CHECK: linalg.reduce ins([[from]] : memref<64x32xf32>) outs([[to]] : memref<32xf16>) dimensions = [0]
// CHECK-NEXT: ([[x:%.+]]: f32, [[held:%.+]]: f16) {
// CHECK-NEXT: [[wide:%.+]] = arith.extf [[held]] : f16 to f32
// CHECK-NEXT: [[sum:%.+]] = arith.addf [[x]], [[wide]] : f32
// CHECK-NEXT: arith.truncf [[sum]] : f32 to f16
// CHECK-LABEL: func.func @narrow_sums(
// CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<64x32xf16>, tensor<64x32xf32>)
// CHECK: [[h:%.+]] = arith.truncf
// CHECK: [[w:%.+]] = arith.extf [[h]] : f16 to f32
// CHECK: linalg.yield [[h]], [[w]] : f16, f32
func.func @narrow_sums(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %C: memref<64x32xf16>, %R: memref<32xf16>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x32xf16> to tensor<64x32xf16>
  %r = bufferization.to_tensor %R restrict writable : memref<32xf16> to tensor<32xf16>
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x32xf32>) outs(%c : tensor<64x32xf16>) {
  ^bb0(%x: f32, %o: f16):
    %v = arith.truncf %x : f32 to f16
    linalg.yield %v : f16
  } -> tensor<64x32xf16>
  %f = linalg.fill ins(%none : f16) outs(%r : tensor<32xf16>) -> tensor<32xf16>
  %s = linalg.reduce ins(%h : tensor<64x32xf16>) outs(%f : tensor<32xf16>) dimensions = [0]
    (%x: f16, %y: f16) {
      %t = arith.addf %x, %y : f16
      linalg.yield %t : f16
    }
  bufferization.materialize_in_destination %h in restrict writable %C : (tensor<64x32xf16>, memref<64x32xf16>) -> ()
  bufferization.materialize_in_destination %s in restrict writable %R : (tensor<32xf16>, memref<32xf16>) -> ()
  return
}

// -----

func.func @product_of_a_row(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %R: memref<64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %r = bufferization.to_tensor %R restrict writable : memref<64xf32> to tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  // expected-error@+1 {{tc.separate_reductions: linalg.generic does not simply fold a value into the result}}
  %s = linalg.reduce ins(%p : tensor<64x32xf32>) outs(%f : tensor<64xf32>) dimensions = [1]
    (%x: f32, %y: f32) {
      %t = arith.mulf %x, %y : f32
      linalg.yield %t : f32
    }
  bufferization.materialize_in_destination %s in restrict writable %R : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}

// -----

func.func @no_constant(%A: memref<64x16xf16>, %B: memref<16x32xf16>, %R: memref<64xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xf16> to tensor<64x16xf16>
  %b = bufferization.to_tensor %B restrict : memref<16x32xf16> to tensor<16x32xf16>
  %r = bufferization.to_tensor %R restrict writable : memref<64xf32> to tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  // expected-error@+1 {{tc.separate_reductions: expected a reduction that begins with copies of a constant}}
  %s = linalg.reduce ins(%p : tensor<64x32xf32>) outs(%r : tensor<64xf32>) dimensions = [1]
    (%x: f32, %y: f32) {
      %t = arith.addf %x, %y : f32
      linalg.yield %t : f32
    }
  bufferization.materialize_in_destination %s in restrict writable %R : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}

// -----

// Zero times the product is folded, and nothing is left to multiply.
func.func @no_effect(%A: memref<64x16xi8>, %B: memref<16x32xi8>, %D: memref<64x32xi32>, %C: memref<64x32xi32>) {
  %a = bufferization.to_tensor %A restrict : memref<64x16xi8> to tensor<64x16xi8>
  %b = bufferization.to_tensor %B restrict : memref<16x32xi8> to tensor<16x32xi8>
  %d = bufferization.to_tensor %D restrict : memref<64x32xi32> to tensor<64x32xi32>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<64x32xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<64x32xi32>) -> tensor<64x32xi32>
  %p = linalg.matmul ins(%a, %b : tensor<64x16xi8>, tensor<16x32xi8>) outs(%z : tensor<64x32xi32>) -> tensor<64x32xi32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %d : tensor<64x32xi32>, tensor<64x32xi32>) outs(%e : tensor<64x32xi32>) {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %q = arith.muli %x, %zero : i32
    %t = arith.addi %q, %y : i32
    linalg.yield %t : i32
  } -> tensor<64x32xi32>
  // expected-error@+1 {{tc.normalize_consumer: expected results that depend on a product}}
  bufferization.materialize_in_destination %s in restrict writable %C : (tensor<64x32xi32>, memref<64x32xi32>) -> ()
  return
}
