// The step of wmma_upstream in the place of pack_shared_memory: each shared tile is a static array of its own.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma_upstream
// RUN: %{opt} --through hoist_accumulators | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through allocate_shared_memory | FileCheck %s

// BEFORE-NOT: memref.global
// BEFORE: memref.alloc() {operand_a} : memref<2x128x40xf16, #gpu.address_space<workgroup>>
// BEFORE: memref.alloc() {operand_b} : memref<2x32x136xf16, #gpu.address_space<workgroup>>

// CHECK-NOT: memref.alloc
// CHECK: gpu.launch
// CHECK-DAG: memref.get_global @[[A:\w+]] : memref<2x128x40xf16, #gpu.address_space<workgroup>>
// CHECK-DAG: memref.get_global @[[B:\w+]] : memref<2x32x136xf16, #gpu.address_space<workgroup>>
// CHECK-NOT: memref.alloc
// CHECK-DAG: memref.global "private" @[[A]] : memref<2x128x40xf16, #gpu.address_space<workgroup>> {alignment = 128 : i64}
// CHECK-DAG: memref.global "private" @[[B]] : memref<2x32x136xf16, #gpu.address_space<workgroup>> {alignment = 128 : i64}
