// The columns of the shared tiles are permuted by the row, in every access alike: in the copies that fill them and in the
// fragment loads. 32 elements a row of A's tile: four places of 16 bytes, permuted by two bits of the row; 128 a row of
// B's: sixteen places, by four bits. Left out, columns are what they were.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync --through swizzle_shared_memory
// RUN: %{opt} -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=EVERY
// RUN: %{opt} --set block_k=64 --set block_n=64 --set warp_n=32 | FileCheck %s --check-prefix=OTHER
// RUN: %{opt} --without swizzle_shared_memory | FileCheck %s --check-prefix=WITHOUT

// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<3x128x32xf16, #gpu.address_space<workgroup>>
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<3x32x128xf16, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK: [[bits:%.+]] = arith.andi [[row:%.+]], %c6
// CHECK-NEXT: [[shifted:%.+]] = arith.shli [[bits]], %c2
// CHECK-NEXT: [[column:%.+]] = arith.xori %{{.*}}, [[shifted]]
// CHECK-NEXT: nvgpu.device_async_copy %A[%{{.*}}], [[A]][%{{.*}}, [[row]], [[column]]], 8
// CHECK: [[bits:%.+]] = arith.andi [[row:%.+]], %c15
// CHECK: [[shifted:%.+]] = arith.shli [[bits]], %c3
// CHECK-NEXT: [[column:%.+]] = arith.xori %{{.*}}, [[shifted]]
// CHECK-NEXT: nvgpu.device_async_copy %B[%{{.*}}], [[B]][%{{.*}}, [[row]], [[column]]], 8
// CHECK: gpu.barrier
// CHECK: [[bits:%.+]] = arith.andi [[row:%.+]], %c6
// CHECK-NEXT: [[shifted:%.+]] = arith.shli [[bits]], %c2
// CHECK-NEXT: [[column:%.+]] = arith.xori %{{.*}}, [[shifted]]
// CHECK-NEXT: nvgpu.ldmatrix [[A]][%{{.*}}, [[row]], [[column]]] {numTiles = 4 : i32, transpose = false}
// CHECK: [[bits:%.+]] = arith.andi [[row:%.+]], %c15
// CHECK-NEXT: [[shifted:%.+]] = arith.shli [[bits]], %c3
// CHECK-NEXT: [[column:%.+]] = arith.xori %{{.*}}, [[shifted]]
// CHECK-NEXT: nvgpu.ldmatrix [[B]][%{{.*}}, [[row]], [[column]]] {numTiles = 4 : i32, transpose = true}

// Eight copies and sixteen loads, each in a column of its own.
// EVERY-COUNT-24: arith.xori
// EVERY-NOT: arith.xori

// 128 bytes a row: eight places, by three bits.
// OTHER: arith.andi %{{.*}}, %c7
// OTHER: arith.shli %{{.*}}, %c3
// OTHER: nvgpu.device_async_copy %A[
// OTHER: arith.andi %{{.*}}, %c7
// OTHER: nvgpu.ldmatrix

// WITHOUT-NOT: arith.xori
// WITHOUT: nvgpu.device_async_copy
// WITHOUT-NOT: arith.xori
// WITHOUT: nvgpu.ldmatrix
// WITHOUT-NOT: arith.xori
