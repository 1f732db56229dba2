// Two matmuls on one tile of A become one: the tiles of both B, and both accumulators, are halves of one buffer.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step merge_products --set block_n=32 --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @rows(
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<32x64xf16, #gpu.address_space<workgroup>>
// CHECK: [[B0:%.+]] = memref.subview [[B]][0, 0] [32, 32] [1, 1]
// CHECK: [[B1:%.+]] = memref.subview [[B]][0, 32] [32, 32] [1, 1]
// CHECK: [[C:%.+]] = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
// CHECK: [[C0:%.+]] = memref.subview [[C]][0, 0] [64, 32] [1, 1]
// CHECK: [[C1:%.+]] = memref.subview [[C]][0, 32] [64, 32] [1, 1]
// CHECK: linalg.copy {operand_b} ins(%B : {{.*}}) outs([[B0]] :
// CHECK-NOT: linalg.matmul
// CHECK: linalg.copy {operand_b} ins(%G : {{.*}}) outs([[B1]] :
// CHECK: linalg.matmul ins([[A]], [[B]] : {{.*}}) outs([[C]] : memref<64x64xf32
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic {{.*}} ins([[C0]], [[C1]] :
func.func @rows(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %G: memref<32x32xf16>, %C: memref<64x32xf16>) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() {operand_a} : memref<64x32xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() {operand_b} : memref<32x32xf16, #gpu.address_space<workgroup>>
    %g = memref.alloc() {operand_b} : memref<32x32xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
    %q = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
    linalg.copy {operand_a} ins(%A : memref<64x32xf16>) outs(%a : memref<64x32xf16, #gpu.address_space<workgroup>>)
    linalg.copy {operand_b} ins(%B : memref<32x32xf16>) outs(%b : memref<32x32xf16, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.copy {operand_b} ins(%G : memref<32x32xf16>) outs(%g : memref<32x32xf16, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%a, %g : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%q : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%p, %q : memref<64x32xf32, #gpu.address_space<workgroup>>, memref<64x32xf32, #gpu.address_space<workgroup>>)
        outs(%C : memref<64x32xf16>) {
    ^bb0(%x: f32, %y: f32, %old: f16):
      %z = arith.mulf %x, %y : f32
      %r = arith.truncf %z : f32 to f16
      linalg.yield %r : f16
    }
    gpu.terminator
  }
  return
}

// -----

// A column-major B is stored as n x k: its halves are rows. What is inside of B is a view of its half.
// CHECK-LABEL: func.func @columns(
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_b} ins(%G : {{.*}}) outs([[IN:%.+]] : memref<?x32xf16, strided<[32, 1], offset: 1024>
// CHECK: linalg.matmul indexing_maps = {{.*}} ins(%{{.*}}, [[B]] : {{.*}}memref<64x32xf16, {{.*}}) outs(%{{.*}} : memref<64x64xf32
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @columns(%B: memref<?x32xf16>, %G: memref<?x32xf16>, %n: index) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() {operand_a} : memref<64x32xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() {operand_b} : memref<32x32xf16, #gpu.address_space<workgroup>>
    %g = memref.alloc() {operand_b} : memref<32x32xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
    %q = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
    %inside_b = memref.subview %b[0, 0] [%n, 32] [1, 1] : memref<32x32xf16, #gpu.address_space<workgroup>> to memref<?x32xf16, strided<[32, 1]>, #gpu.address_space<workgroup>>
    %inside_g = memref.subview %g[0, 0] [%n, 32] [1, 1] : memref<32x32xf16, #gpu.address_space<workgroup>> to memref<?x32xf16, strided<[32, 1]>, #gpu.address_space<workgroup>>
    linalg.copy {operand_b} ins(%B : memref<?x32xf16>) outs(%inside_b : memref<?x32xf16, strided<[32, 1]>, #gpu.address_space<workgroup>>)
    linalg.copy {operand_b} ins(%G : memref<?x32xf16>) outs(%inside_g : memref<?x32xf16, strided<[32, 1]>, #gpu.address_space<workgroup>>)
    linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %g : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%q : memref<64x32xf32, #gpu.address_space<workgroup>>)
    gpu.terminator
  }
  return
}

// -----

func.func @other_a(%n: index) {
  %one = arith.constant 1 : index
  // expected-error@+1 {{tc.merge_products: expected two matmuls of one A in the launch, found 2 matmuls}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
    %o = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<32x32xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%o, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    gpu.terminator
  }
  return
}

// -----

func.func @views(%b: memref<32x32xf16, #gpu.address_space<workgroup>>) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    // expected-error@+1 {{tc.merge_products: operand 1 is not a whole tile in shared memory}}
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    gpu.terminator
  }
  return
}

// -----

func.func @layouts(%n: index) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<32x32xf16, #gpu.address_space<workgroup>>
    %g = memref.alloc() : memref<32x32xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    %q = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    // expected-error@+1 {{tc.merge_products: expected it beside the first matmul, with operands in the same layouts}}
    linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %g : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%q : memref<64x32xf32, #gpu.address_space<workgroup>>)
    gpu.terminator
  }
  return
}

// -----

func.func @types(%n: index) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<32x32xf16, #gpu.address_space<workgroup>>
    // expected-error@+1 {{tc.merge_products: expected a second tile of memref<32x32xf16, #gpu.address_space<workgroup>> beside the first}}
    %g = memref.alloc() : memref<32x64xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    %q = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%a, %g : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x64xf16, #gpu.address_space<workgroup>>)
      outs(%q : memref<64x64xf32, #gpu.address_space<workgroup>>)
    gpu.terminator
  }
  return
}

// -----

func.func @blocks(%n: index) {
  %one = arith.constant 1 : index
  %b = memref.alloc() : memref<32x32xf16, #gpu.address_space<workgroup>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %a = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
    // expected-error@+1 {{tc.merge_products: expected a second tile of memref<32x32xf16, #gpu.address_space<workgroup>> beside the first}}
    %g = memref.alloc() : memref<32x32xf16, #gpu.address_space<workgroup>>
    %p = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    %q = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
    linalg.matmul ins(%a, %b : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%p : memref<64x32xf32, #gpu.address_space<workgroup>>)
    linalg.matmul ins(%a, %g : memref<64x32xf16, #gpu.address_space<workgroup>>, memref<32x32xf16, #gpu.address_space<workgroup>>)
      outs(%q : memref<64x32xf32, #gpu.address_space<workgroup>>)
    gpu.terminator
  }
  return
}
