// Operands of contractions of bf16 are read as f16, from one cast of each buffer, and the contractions are marked.
//
// RUN: %stepladder-opt %s --pipeline wmma --step load_bf16_as_f16 --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @shared_operand(
// CHECK-SAME: [[A:%[^:]+]]: memref<16x40xbf16, {{[^,]+}}, [[B:%[^:]+]]: memref<16x16xbf16>
// CHECK-DAG: [[a:%.+]] = builtin.unrealized_conversion_cast [[A]] : memref<16x40xbf16, {{.*}}> to memref<16x40xf16, {{.*}}>
// CHECK-DAG: [[b:%.+]] = builtin.unrealized_conversion_cast [[B]] : memref<16x16xbf16> to memref<16x16xf16>
// CHECK-DAG: [[x:%.+]] = vector.transfer_read [[a]][%c0, %c0], {{.*}} : memref<16x40xf16, {{.*}}>, vector<16x16xf16>
// CHECK-DAG: [[y:%.+]] = vector.transfer_read [[b]][%c0, %c0], {{.*}} permutation_map = {{.*}} vector<16x16xf16>
// CHECK: vector.contract {{.*}} [[x]], [[y]], %c {of_bf16} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
// CHECK: [[z:%.+]] = vector.transfer_read [[a]][%c0, %c16]
// CHECK: vector.contract {{.*}} [[z]], [[y]], %d {of_bf16}
// CHECK-NOT: xbf16>, vector
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
!sum = vector<16x16xf32>
!part = vector<16x16xbf16>
func.func @shared_operand(%A: memref<16x40xbf16, #space>, %B: memref<16x16xbf16>, %c: !sum, %d: !sum) -> (!sum, !sum) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %x = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x40xbf16, #space>, !part
  %y = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true], permutation_map = #transposed}
      : memref<16x16xbf16>, !part
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %x, %y, %c : !part, !part into !sum
  %z = vector.transfer_read %A[%c0, %c16], %zero {in_bounds = [true, true]} : memref<16x40xbf16, #space>, !part
  %1 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %z, %y, %d : !part, !part into !sum
  return %0, %1 : !sum, !sum
}

// -----

// CHECK-LABEL: func.func @halves(
// CHECK-NOT: {{builtin|of_bf16}}
// CHECK: // -----
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @halves(%a: vector<16x16xf16>, %b: vector<16x16xf16>, %c: vector<16x16xf32>) -> vector<16x16xf32> {
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %c : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
  return %0 : vector<16x16xf32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @no_read(%a: vector<16x16xbf16>, %b: vector<16x16xbf16>, %c: vector<16x16xf32>) -> vector<16x16xf32> {
  // expected-error@+1 {{tc.load_bf16_as_f16: expected operands of bf16 that are read from buffers, in bounds}}
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %c : vector<16x16xbf16>, vector<16x16xbf16> into vector<16x16xf32>
  return %0 : vector<16x16xf32>
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @padded(%A: memref<16x12xbf16>, %c: vector<16x16xf32>) -> vector<16x16xf32> {
  %one = arith.constant 1.0 : bf16
  %c0 = arith.constant 0 : index
  %a = vector.transfer_read %A[%c0, %c0], %one {in_bounds = [true, false]} : memref<16x12xbf16>, vector<16x16xbf16>
  // expected-error@+1 {{tc.load_bf16_as_f16: expected operands of bf16 that are read from buffers, in bounds}}
  %0 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %a, %c : vector<16x16xbf16>, vector<16x16xbf16> into vector<16x16xf32>
  return %0 : vector<16x16xf32>
}
