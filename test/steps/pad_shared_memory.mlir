// Rows of the shared tiles grow by `padding` elements, and nothing else changes. Left out, they do not.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through
// RUN: %{opt} map_to_fragments | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} pad_shared_memory | FileCheck %s
// RUN: %{opt} pad_shared_memory --set padding=16 --set block_m=64 --set block_k=64 | FileCheck %s --check-prefix=OTHER
// RUN: %{opt} pad_shared_memory --set padding=0 | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} convert_to_wmma --set stages=1 | FileCheck %s --check-prefix=ROWS
// RUN: %{opt} convert_to_wmma --set stages=1 --without pad_shared_memory | FileCheck %s --check-prefix=ROWS-WITHOUT

// CHECK: memref.alloc() {operand_a} : memref<128x40xf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() {operand_b} : memref<32x136xf16, #gpu.address_space<workgroup>>
// CHECK: vector.transfer_write {{.*}} : vector<8xf16>, memref<128x40xf16, #gpu.address_space<workgroup>>
// CHECK: vector.transfer_read {{.*}} : memref<128x40xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>
// CHECK: vector.transfer_read {{.*}} : memref<32x136xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>

// OTHER: memref.alloc() {operand_a} : memref<64x80xf16, #gpu.address_space<workgroup>>
// OTHER: memref.alloc() {operand_b} : memref<64x144xf16, #gpu.address_space<workgroup>>

// WITHOUT: memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
// WITHOUT: memref.alloc() {operand_b} : memref<32x128xf16, #gpu.address_space<workgroup>>

// ROWS: gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 40 : index} : {{.*}}"AOp">
// ROWS: gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 136 : index} : {{.*}}"BOp">

// ROWS-WITHOUT: gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 32 : index} : {{.*}}"AOp">
// ROWS-WITHOUT: gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 128 : index} : {{.*}}"BOp">
