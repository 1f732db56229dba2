// The copies are plain vector loads and stores, and all of them say that they are aligned to 16 bytes: without that, LLVM
// takes a 128-bit access apart.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through issue_loads_early | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through lower_transfers | FileCheck %s

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
