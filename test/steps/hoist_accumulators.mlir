// The sixteen fragments of a warp's C are read in front of the k loop, carried through it in registers, and written
// behind it. For C = AB nothing is read or zeroed in memory. Left out, the loop carries nothing.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through hoist_accumulators
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --without hoist_accumulators | FileCheck %s --check-prefix=WITHOUT
// RUN: %stepladder-opt %payloads/product.mlir --pipeline wmma --through hoist_accumulators | FileCheck %s --check-prefix=ZERO
// RUN: %stepladder-opt %payloads/accumulate_f16.mlir --pipeline wmma --through hoist_accumulators | FileCheck %s --check-prefix=HALF

// CHECK: func.func @matmul([[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}, [[C:%\w+]]: {{.*}}) {
// CHECK: [[c:%.+]] = vector.transfer_read [[C]][{{.*}} : memref<256x256xf32>, vector<16x16xf32>
// CHECK-COUNT-15: vector.transfer_read [[C]][
// CHECK-NOT: vector.transfer_read [[C]][
// CHECK: [[d:%.+]]:16 = scf.for {{.*}} iter_args([[sum:%.+]] = [[c]], {{.*}} -> (vector<16x16xf32>,
// CHECK-NOT: [[C]]
// CHECK: vector.contract {{.*}}, [[sum]] :
// CHECK-NOT: [[C]]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-COUNT-16: vector.transfer_write [[d]]#{{.*}}, [[C]][
// CHECK-NOT: vector.transfer_write

// WITHOUT: func.func @matmul([[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}, [[C:%\w+]]: {{.*}}) {
// WITHOUT: gpu.launch
// WITHOUT-NOT: vector.transfer_read [[C]]
// WITHOUT: scf.for
// WITHOUT-NOT: iter_args
// WITHOUT-COUNT-16: vector.transfer_read [[C]][
// WITHOUT-COUNT-16: vector.transfer_write %{{.*}}, [[C]][
// WITHOUT-NEXT: }

// ZERO: func.func @matmul([[A:%\w+]]: {{.*}}, [[B:%\w+]]: {{.*}}, [[C:%\w+]]: {{.*}}) {
// ZERO: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<16x16xf32>
// ZERO: gpu.launch
// ZERO-NOT: [[C]]
// ZERO: [[d:%.+]]:16 = scf.for {{.*}} iter_args(%{{.*}} = [[zeros]], %{{.*}} = [[zeros]],
// ZERO-NOT: [[C]]
// ZERO: scf.yield
// ZERO-NEXT: }
// ZERO-COUNT-16: vector.transfer_write [[d]]#{{.*}}, [[C]][
// ZERO-NOT: vector.transfer_write

// HALF: scf.for {{.*}} iter_args({{.*}} -> (vector<16x16xf16>, vector<16x16xf16>,
