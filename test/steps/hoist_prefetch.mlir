// The loads of the next tile stand behind the barrier that ends the copies and in front of the first read of shared
// memory: with two buffers, and with one, where a second barrier ends the computation. Left out, they come last.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through hoist_prefetch
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set stages=1 | FileCheck %s --check-prefix=ONE
// RUN: %{opt} --without hoist_prefetch | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --without prefetch_to_registers -o %t.early
// RUN: %{opt} --without prefetch_to_registers,hoist_prefetch -o %t.late
// RUN: diff %t.early %t.late

// CHECK: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// CHECK: scf.for [[k:%.+]] = %c0 to %c96 step %c32
// CHECK-COUNT-8: vector.transfer_write
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: gpu.subgroup_mma
// CHECK: [[next:%.+]] = arith.addi [[k]], %c32
// CHECK: affine.apply {{.*}}[[next]]
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[A]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[A]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[A]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[A]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[B]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[B]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[B]][
// CHECK-NOT: gpu.subgroup_mma
// CHECK: vector.transfer_read [[B]][
// CHECK: gpu.subgroup_mma_load_matrix
// CHECK-COUNT-32: gpu.subgroup_mma_compute
// CHECK-NOT: {{vector.transfer|gpu.barrier}}
// CHECK: scf.yield

// ONE: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// ONE: scf.for
// ONE-COUNT-8: vector.transfer_write
// ONE-NEXT: gpu.barrier
// ONE-NOT: gpu.subgroup_mma
// ONE: vector.transfer_read [[A]][
// ONE-COUNT-7: vector.transfer_read
// ONE-NEXT: gpu.subgroup_mma_load_matrix
// ONE-COUNT-32: gpu.subgroup_mma_compute
// ONE-NEXT: gpu.barrier
// ONE-NEXT: scf.yield

// WITHOUT: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// WITHOUT: scf.for
// WITHOUT: gpu.barrier
// WITHOUT-NEXT: gpu.subgroup_mma_load_matrix
// WITHOUT-NOT: vector.transfer_read
// WITHOUT-COUNT-32: gpu.subgroup_mma_compute
// WITHOUT: vector.transfer_read [[A]][
