// Rows of the shared tiles grow by `padding` elements, and nothing else changes.
//
// DEFINE: %{sizes} = --set block_m=16 --set block_n=32 --set block_k=16
// RUN: %stepladder-opt %s --pipeline wmma --step pad_shared_memory %{sizes} --split-input-file | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wmma --step pad_shared_memory %{sizes} --set padding=0 \
// RUN:   --split-input-file | FileCheck %s --check-prefix=NONE

// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<16x24xf16, #gpu.address_space<workgroup>>
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<16x40xf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() : memref<16x16xf16, #gpu.address_space<workgroup>>
// CHECK: vector.transfer_write {{.*}}, [[A]]{{.*}} : vector<8xf16>, memref<16x24xf16, #gpu.address_space<workgroup>>
// CHECK: vector.transfer_read [[A]]{{.*}} : memref<16x24xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>
// CHECK: vector.transfer_read [[B]]{{.*}} : memref<16x40xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>

// NONE: memref.alloc() {operand_a} : memref<16x16xf16, #gpu.address_space<workgroup>>
// NONE: memref.alloc() {operand_b} : memref<16x32xf16, #gpu.address_space<workgroup>>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#space = #gpu.address_space<workgroup>
func.func @tiles(%x: vector<8xf16>, %C: memref<16x16xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %a = memref.alloc() {operand_a} : memref<16x16xf16, #space>
  %b = memref.alloc() {operand_b} : memref<16x32xf16, #space>
  %other = memref.alloc() : memref<16x16xf16, #space>
  vector.transfer_write %x, %a[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x16xf16, #space>
  %0 = vector.transfer_read %a[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x16xf16, #space>, vector<16x16xf16>
  %1 = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x32xf16, #space>, vector<16x16xf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %0 : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf16>
  vector.transfer_write %2, %other[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16, #space>
  vector.transfer_write %1, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
  return
}

// -----

// A tile of a column-major operand is stored as its transpose: the columns are padded.
// CHECK-LABEL: func.func @columns(
// CHECK: memref.alloc() {operand_a} : memref<16x24xf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() {operand_b} : memref<32x24xf16, #gpu.address_space<workgroup>>
// NONE-LABEL: func.func @columns(
// NONE: memref.alloc() {operand_a} : memref<16x16xf16, #gpu.address_space<workgroup>>
// NONE: memref.alloc() {operand_b} : memref<32x16xf16, #gpu.address_space<workgroup>>
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
#space = #gpu.address_space<workgroup>
func.func @columns(%C: memref<16x16xf16>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %a = memref.alloc() {operand_a} : memref<16x16xf16, #space>
  %b = memref.alloc() {operand_b} : memref<32x16xf16, #space>
  %0 = vector.transfer_read %a[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x16xf16, #space>, vector<16x16xf16>
  %1 = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<32x16xf16, #space>, vector<16x16xf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %0 : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf16>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
  return
}
