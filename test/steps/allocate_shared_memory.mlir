// The step of wmma_upstream in the place of pack_shared_memory: each shared tile is a static array of its own.
//
// RUN: %stepladder-opt %s --pipeline wmma_upstream --step allocate_shared_memory --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @launch(
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch
// CHECK-NEXT: [[a:%.+]] = memref.get_global @[[A:\w+]] : memref<2x16x24xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT: [[b:%.+]] = memref.get_global @[[B:\w+]] : memref<2x16x40xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT: vector.store %x, [[a]][
// CHECK-NEXT: vector.store %x, [[b]][
// CHECK-DAG: memref.global "private" @[[A]] : memref<2x16x24xf16, {{.*}}> {alignment = 128 : i64}
// CHECK-DAG: memref.global "private" @[[B]] : memref<2x16x40xf16, {{.*}}> {alignment = 128 : i64}
// CHECK: // -----
func.func @launch(%x: vector<8xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x16x24xf16, #gpu.address_space<workgroup>>
    %b = memref.alloc() {operand_b} : memref<2x16x40xf16, #gpu.address_space<workgroup>>
    vector.store %x, %a[%c0, %c0, %c0] : memref<2x16x24xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.store %x, %b[%c0, %c0, %c0] : memref<2x16x40xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    gpu.terminator
  }
  return
}

// -----

// CHECK-LABEL: func.func @no_shared_memory(
// CHECK-NOT: memref.global
func.func @no_shared_memory() {
  return
}
