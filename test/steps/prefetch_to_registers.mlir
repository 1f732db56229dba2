// The loads of iteration i + 1 are issued in iteration i and carried to the next one, which stores them: the first loads
// stand in front of the loop, the last stores and products behind it, and the loop is one iteration shorter. Left out,
// every store waits for the load in front of it.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through prefetch_to_registers
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set stages=1 | FileCheck %s --check-prefix=ONE
// RUN: %{opt} --without prefetch_to_registers | FileCheck %s --check-prefix=WITHOUT

// CHECK: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// CHECK: [[first:%.+]] = vector.transfer_read [[A]][{{.*}}vector<8xf16>
// CHECK-COUNT-3: vector.transfer_read [[A]][
// CHECK-COUNT-4: vector.transfer_read [[B]][
// CHECK-NOT: vector.transfer
// CHECK: [[last:%.+]]:24 = scf.for [[k:%.+]] = %c0 to %c96 step %c32 iter_args({{.*}}[[carried:%\w+]] = [[first]],{{.*}}vector<8xf16>)
// CHECK-NOT: vector.transfer_read
// CHECK: vector.transfer_write [[carried]], [[SHARED:%\w+]][
// CHECK-COUNT-7: vector.transfer_write
// CHECK-NOT: vector.transfer
// CHECK: gpu.barrier
// CHECK-NOT: vector.transfer
// CHECK-COUNT-32: gpu.subgroup_mma_compute
// CHECK-NOT: gpu.barrier
// CHECK: vector.transfer_read [[A]][
// CHECK-COUNT-3: vector.transfer_read [[A]][
// CHECK-COUNT-4: vector.transfer_read [[B]][
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: vector.transfer_write [[last]]#16, [[SHARED]][
// CHECK-COUNT-7: vector.transfer_write
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-32: gpu.subgroup_mma_compute
// CHECK-NOT: {{gpu.barrier|vector.transfer}}

// One buffer: stores, barrier, products, barrier, and the loads of the next tile.
// ONE: scf.for
// ONE-COUNT-8: vector.transfer_write
// ONE: gpu.barrier
// ONE-COUNT-32: gpu.subgroup_mma_compute
// ONE: gpu.barrier
// ONE-COUNT-8: vector.transfer_read
// ONE: scf.yield
// ONE-NEXT: }
// ONE-COUNT-8: vector.transfer_write
// ONE: gpu.barrier
// ONE-COUNT-32: gpu.subgroup_mma_compute

// WITHOUT-NOT: vector.transfer_read
// WITHOUT: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// WITHOUT: scf.for %{{.*}} = %c0 to %c128 step %c32
// WITHOUT-SAME: iter_args
// WITHOUT: [[x:%.+]] = vector.transfer_read [[A]][
// WITHOUT: vector.transfer_write [[x]],
// WITHOUT: gpu.barrier
// WITHOUT-COUNT-32: gpu.subgroup_mma_compute
// WITHOUT-NOT: {{vector.transfer|gpu.subgroup_mma_compute}}
