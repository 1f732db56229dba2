// The copies are plain vector loads and stores, and all of them say that they are aligned to 16 bytes: without that, LLVM
// takes a 128-bit access apart. What is aligned to less, and says so, stays: pairs of sums.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through hoist_prefetch | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through lower_transfers | FileCheck %s
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync --through lower_transfers | FileCheck %s --check-prefix=PAIRS
// RUN: %stepladder-opt %payloads/accumulate_f16.mlir --pipeline mma_sync --through lower_transfers | FileCheck %s --check-prefix=HALVES

// BEFORE: vector.transfer_read
// BEFORE: vector.transfer_write

// CHECK-NOT: vector.transfer
// CHECK: gpu.func @matmul_kernel([[C:%\w+]]: {{.*}}, [[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}) kernel
// CHECK-COUNT-8: vector.load %{{\w+}}[{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<8xf16>
// CHECK-NOT: vector.load
// CHECK: scf.for
// CHECK-COUNT-8: vector.store {{.*}} {alignment = 16 : i64} : memref<2x{{.*}}workgroup>>, vector<8xf16>
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-8: vector.load %{{\w+}}[{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<8xf16>
// CHECK: scf.yield
// CHECK-COUNT-8: vector.store {{.*}} {alignment = 16 : i64} : memref<2x{{.*}}workgroup>>, vector<8xf16>
// CHECK-NOT: {{vector.store|vector.load|vector.transfer}}

// PAIRS-COUNT-64: vector.load {{.*}} {alignment = 8 : i64} : memref<{{.*}}xf32>, vector<2xf32>
// PAIRS-NOT: vector.load
// PAIRS-COUNT-64: vector.store {{.*}} {alignment = 8 : i64} : memref<{{.*}}xf32>, vector<2xf32>

// HALVES-COUNT-64: vector.load {{.*}} {alignment = 4 : i64} : memref<{{.*}}xf16>, vector<2xf16>
// HALVES-COUNT-64: vector.store {{.*}} {alignment = 4 : i64} : memref<{{.*}}xf16>, vector<2xf16>
