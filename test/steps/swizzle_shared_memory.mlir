// Copies write and ldmatrix reads columns that are permuted by an exclusive or with the row.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through swizzle_shared_memory | FileCheck %s
// RUN: %{opt} --through pack_shared_memory --without swizzle_shared_memory | FileCheck %s --check-prefix=WITHOUT

// CHECK: [[written:%.+]] = arith.xori
// CHECK-NEXT: nvgpu.device_async_copy %A[{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}, [[written]]]
// CHECK: [[read:%.+]] = arith.xori
// CHECK-NEXT: nvgpu.ldmatrix %{{.*}}[%{{.*}}, %{{.*}}, [[read]]] {numTiles = 4 : i32, transpose = false}

// WITHOUT-NOT: arith.xori
