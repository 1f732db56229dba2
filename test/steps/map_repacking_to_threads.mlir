// Copies to workspaces become launches of 128 threads, of which each copies 32 bytes; its loads precede its stores.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step map_repacking_to_threads --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s

// Rows of 58 bytes: single elements of 16 rows, five blocks for 67 rows; the last has three rows.
// CHECK-LABEL: func.func @odd(
// CHECK: [[W:%.+]] = memref.alloc() {workspace}
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c5, {{.*}} = %c1{{.*}}) threads({{.*}}) in ({{.*}} = %c128
// CHECK-SAME: module(@odd_repack_0) function(@odd_repack_0)
// CHECK: [[COLUMNS:%.+]] = arith.constant 29
// CHECK: arith.cmpi ult, {{.*}}, [[COLUMNS]]
// CHECK: [[ROWS:%.+]] = arith.constant 52
// CHECK: [[WHOLE:%.+]] = arith.cmpi ult, {{.*}}, [[ROWS]]
// CHECK: scf.if [[WHOLE]]
// CHECK-COUNT-16: memref.load %A
// CHECK-NOT: memref.load
// CHECK-COUNT-16: memref.store {{.*}}, [[W]]
// CHECK: } else {
// CHECK: scf.for
// CHECK-NEXT: [[V:%.+]] = memref.load %A
// CHECK-NEXT: memref.store [[V]], [[W]]
// CHECK-NOT: memref.copy
func.func @odd(%A: memref<67x29xbf16>) {
  %w = memref.alloc() {workspace} : memref<67x64xbf16>
  %v = memref.subview %w[0, 0] [67, 29] [1, 1] : memref<67x64xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  memref.copy %A, %v {workspace} : memref<67x29xbf16> to memref<67x29xbf16, strided<[64, 1]>>
  return
}

// -----

// Rows of 8 bytes more than a multiple of 16: vectors of four, of four rows. All blocks have four rows.
// CHECK-LABEL: func.func @vectors(
// CHECK: scf.if
// CHECK-NOT: scf
// CHECK-COUNT-4: vector.load %A{{.*}} {alignment = 8 : i64} : memref<64x1540xf16>, vector<4xf16>
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 8 : i64} : memref<64x1600xf16>, vector<4xf16>
// CHECK-NOT: scf
func.func @vectors(%A: memref<64x1540xf16>) {
  %w = memref.alloc() {workspace} : memref<64x1600xf16>
  %v = memref.subview %w[0, 0] [64, 1540] [1, 1] : memref<64x1600xf16> to memref<64x1540xf16, strided<[1600, 1]>>
  memref.copy %A, %v {workspace} : memref<64x1540xf16> to memref<64x1540xf16, strided<[1600, 1]>>
  return
}

// -----

// The matrices of a batch are rows of one.
// CHECK-LABEL: func.func @batch(
// CHECK: memref.collapse_shape %A {{\[\[}}0, 1], [2]] : memref<3x10x5xf16> into memref<30x5xf16>
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c2,
func.func @batch(%A: memref<3x10x5xf16>) {
  %w = memref.alloc() {workspace} : memref<3x10x64xf16>
  %v = memref.subview %w[0, 0, 0] [3, 10, 5] [1, 1, 1]
      : memref<3x10x64xf16> to memref<3x10x5xf16, strided<[640, 64, 1]>>
  memref.copy %A, %v {workspace} : memref<3x10x5xf16> to memref<3x10x5xf16, strided<[640, 64, 1]>>
  return
}

// -----

// Other copies stay.
// CHECK-LABEL: func.func @others(
// CHECK: memref.copy %A, %B : memref<8xf16> to memref<8xf16>
func.func @others(%A: memref<8xf16>, %B: memref<8xf16>) {
  memref.copy %A, %B : memref<8xf16> to memref<8xf16>
  return
}

// -----

func.func @to_an_argument(%A: memref<67x29xf16>, %B: memref<67x64xf16>) {
  %v = memref.subview %B[0, 0] [67, 29] [1, 1] : memref<67x64xf16> to memref<67x29xf16, strided<[64, 1]>>
  // expected-error@+1 {{tc.map_repacking_to_threads: expected a copy to the matrix of a workspace}}
  memref.copy %A, %v {workspace} : memref<67x29xf16> to memref<67x29xf16, strided<[64, 1]>>
  return
}

// -----

func.func @of_a_view(%A: memref<67x29xf16, strided<[30, 1]>>) {
  %w = memref.alloc() {workspace} : memref<67x64xf16>
  %v = memref.subview %w[0, 0] [67, 29] [1, 1] : memref<67x64xf16> to memref<67x29xf16, strided<[64, 1]>>
  // expected-error@+1 {{tc.map_repacking_to_threads: expected a copy of a contiguous buffer}}
  memref.copy %A, %v {workspace} : memref<67x29xf16, strided<[30, 1]>> to memref<67x29xf16, strided<[64, 1]>>
  return
}
