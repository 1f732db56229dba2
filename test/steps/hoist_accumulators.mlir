// The fragments of C are read in front of the k loop, carried through it in registers, and written behind it.
//
// RUN: %stepladder-opt %s --pipeline wmma --step hoist_accumulators --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @accumulate(
// CHECK: [[row:%.+]] = affine.apply
// CHECK: [[c:%.+]] = vector.transfer_read %C{{\[}}[[row]], %c0], {{.*}} : memref<32x16xf32>, vector<16x16xf32>
// CHECK: [[d:%.+]] = scf.for {{.*}} iter_args([[sum:%.+]] = [[c]]) -> (vector<16x16xf32>)
// CHECK-NOT: {{%C|affine.apply}}
// CHECK: [[next:%.+]] = vector.contract {{.*}}, [[sum]] :
// CHECK-NOT: %C
// CHECK: scf.yield [[next]]
// CHECK-NEXT: }
// CHECK-NEXT: vector.transfer_write [[d]], %C{{\[}}[[row]], %c0]
// CHECK-NEXT: return
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#row = affine_map<()[s0] -> (s0 * 16)>
func.func @accumulate(%A: memref<16x64xf16>, %B: memref<64x16xf16>, %C: memref<32x16xf32>, %warp: index) {
  %zero = arith.constant 0.0 : f16
  %zero_c = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %c64 step %c16 {
    %row = affine.apply #row()[%warp]
    %0 = vector.transfer_read %A[%c0, %k], %zero {in_bounds = [true, true]} : memref<16x64xf16>, vector<16x16xf16>
    %1 = vector.transfer_read %B[%k, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf16>, vector<16x16xf16>
    %2 = vector.transfer_read %C[%row, %c0], %zero_c {in_bounds = [true, true]} : memref<32x16xf32>, vector<16x16xf32>
    %3 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %0, %1, %2 : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %3, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<32x16xf32>
  }
  return
}

// -----

// For C = AB nothing is read or zeroed in memory.
// CHECK-LABEL: func.func @from_zero(
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<16x16xf16>
// CHECK-NOT: %C
// CHECK: [[d:%.+]] = scf.for {{.*}} iter_args(%{{.*}} = [[zeros]]) -> (vector<16x16xf16>)
// CHECK-NOT: %C
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: vector.transfer_write [[d]], %C
// CHECK-NEXT: return
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @from_zero(%A: memref<16x64xf16>, %B: memref<64x16xf16>, %C: memref<16x16xf16>) {
  %zero = arith.constant 0.0 : f16
  %zeros = arith.constant dense<0.0> : vector<16x16xf16>
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  vector.transfer_write %zeros, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
  scf.for %k = %c0 to %c64 step %c16 {
    %0 = vector.transfer_read %A[%c0, %k], %zero {in_bounds = [true, true]} : memref<16x64xf16>, vector<16x16xf16>
    %1 = vector.transfer_read %B[%k, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf16>, vector<16x16xf16>
    %2 = vector.transfer_read %C[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %3 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %0, %1, %2 : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf16>
    vector.transfer_write %3, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
  }
  return
}

// -----

// Fragments that are not the same in every iteration stay in the loop.
// CHECK-LABEL: func.func @other_rows(
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: vector.transfer_read %C
// CHECK: vector.transfer_write {{.*}}, %C
// CHECK-NEXT: }
func.func @other_rows(%C: memref<64x16xf32>, %x: vector<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %c64 step %c16 {
    %0 = vector.transfer_read %C[%k, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf32>, vector<16x16xf32>
    %1 = arith.addf %0, %x : vector<16x16xf32>
    vector.transfer_write %1, %C[%k, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<64x16xf32>
  }
  return
}
