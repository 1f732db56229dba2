// Each shared tile has a stage for each of successive iterations: one barrier an iteration is then enough. With one
// stage there is a second barrier.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wmma --step multi_buffer --split-input-file
// RUN: %{opt} --verify-diagnostics | FileCheck %s
// RUN: %{opt} --set stages=1 | FileCheck %s --check-prefix=ONE

// CHECK: #[[stage:.+]] = affine_map<(d0) -> ((d0 floordiv 32) mod 2)>
// CHECK-LABEL: func.func @loop(
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<2x16x16xf16, #gpu.address_space<workgroup>>
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<2x16x16xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for [[k:%.+]] = %c0
// CHECK: [[i:%.+]] = affine.apply #[[stage]]([[k]])
// CHECK: vector.transfer_write %x, [[A]]{{\[}}[[i]], %c0, %c0]
// CHECK: vector.transfer_write %x, [[B]]{{\[}}[[i]], %c0, %c0]
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: vector.transfer_read [[A]]{{\[}}[[i]], %c0, %c0]
// CHECK-NEXT: vector.transfer_read [[B]]{{\[}}[[i]], %c0, %c0]
// CHECK: vector.transfer_write {{.*}}, %C
// CHECK-NEXT: }

// ONE: memref.alloc() {operand_a} : memref<1x16x16xf16, #gpu.address_space<workgroup>>
// ONE: memref.alloc() {operand_b} : memref<1x16x16xf16, #gpu.address_space<workgroup>>
// ONE: scf.for
// ONE: vector.transfer_write %x
// ONE: gpu.barrier
// ONE: vector.transfer_write {{.*}}, %C
// ONE-NEXT: gpu.barrier
// ONE-NEXT: }
#space = #gpu.address_space<workgroup>
func.func @loop(%x: vector<8xf16>, %C: memref<16x16xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %a = memref.alloc() {operand_a} : memref<16x16xf16, #space>
  %b = memref.alloc() {operand_b} : memref<16x16xf16, #space>
  scf.for %k = %c0 to %c128 step %c32 {
    vector.transfer_write %x, %a[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
    vector.transfer_write %x, %b[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
    gpu.barrier
    %0 = vector.transfer_read %a[%c0, %c0], %zero {in_bounds = [true, true]}
        : memref<16x16xf16, #space>, vector<16x16xf16>
    %1 = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true, true]}
        : memref<16x16xf16, #space>, vector<16x16xf16>
    %2 = arith.addf %0, %1 : vector<16x16xf16>
    vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
    gpu.barrier
  }
  return
}

// -----

// The barrier behind the products cannot go where there is none.
// expected-error@unknown {{expected to contain 2 payloads but it contains 1 payloads}}
#space = #gpu.address_space<workgroup>
func.func @one_barrier(%x: vector<8xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %a = memref.alloc() {operand_a} : memref<16x16xf16, #space>
  scf.for %k = %c0 to %c128 step %c32 {
    vector.store %x, %a[%c0, %c0] : memref<16x16xf16, #space>, vector<8xf16>
    gpu.barrier
  }
  return
}
