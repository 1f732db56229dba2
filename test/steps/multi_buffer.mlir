// Each shared tile has two places, used in turn: one barrier an iteration is then enough. Left out, or with one buffer,
// there is one place and a second barrier.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through multi_buffer | FileCheck %s
// RUN: %{opt} --through multi_buffer --without multi_buffer | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --through multi_buffer --set stages=1 | FileCheck %s --check-prefix=ONE

// CHECK: #[[turn:.+]] = affine_map<(d0) -> ((d0 floordiv 32) mod 2)>
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<2x128x40xf16, #gpu.address_space<workgroup>>
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<2x32x136xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for [[k:%.+]] = %c0
// CHECK: [[place:%.+]] = affine.apply #[[turn]]([[k]])
// CHECK: vector.transfer_write %{{.*}}, [[A]]{{\[}}[[place]], %{{.*}}, %{{.*}}]
// CHECK: vector.transfer_write %{{.*}}, [[B]]{{\[}}[[place]], %{{.*}}, %{{.*}}]
// CHECK: gpu.barrier
// CHECK: vector.transfer_read [[A]]{{\[}}[[place]], %{{.*}}, %c0]
// CHECK: vector.transfer_read [[B]]{{\[}}[[place]], %c0, %{{.*}}]
// CHECK-COUNT-32: vector.contract
// CHECK-NOT: gpu.barrier

// WITHOUT: memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>
// WITHOUT: gpu.barrier
// WITHOUT-COUNT-32: vector.contract
// WITHOUT: gpu.barrier
// WITHOUT-NEXT: }

// ONE: memref.alloc() {operand_a} : memref<1x128x40xf16, #gpu.address_space<workgroup>>
// ONE: gpu.barrier
// ONE-COUNT-32: vector.contract
// ONE: gpu.barrier
// ONE-NEXT: }
