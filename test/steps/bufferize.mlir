// No tensors are left, and C is updated in place: its tile is a view of the argument, and nothing is allocated or copied
// but the tiles in shared memory.
//
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through stage_in_shared_memory | FileCheck %s --check-prefix=BEFORE
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through bufferize | FileCheck %s
// RUN: %stepladder-opt %payloads/product.mlir --pipeline wmma --through bufferize | FileCheck %s --check-prefix=ZERO

// BEFORE: linalg.matmul ins({{.*}} : tensor<128x32xf16>, tensor<32x128xf16>)
// BEFORE: bufferization.materialize_in_destination

// CHECK-NOT: {{tensor<|bufferization}}
// CHECK: func.func @matmul(%{{.*}}, %{{.*}}, [[C:%.+]]: memref<256x256xf32>)
// CHECK: [[c:%.+]] = memref.subview [[C]]{{\[}}%{{.*}}, %{{.*}}] [128, 128] [1, 1] : memref<256x256xf32> to memref<128x128xf32, strided<[256, 1], offset: ?>>
// CHECK: scf.for %{{[^:]*}} {
// CHECK: memref.subview %{{.*}}[0, %{{.*}}] [128, 32] [1, 1]
// CHECK-SAME: to memref<128x32xf16, strided<[128, 1], offset: ?>>
// CHECK: memref.alloc() {operand_a} : memref<128x32xf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() {operand_b} : memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.matmul ins({{.*}}) outs([[c]] : memref<128x128xf32, strided<[256, 1], offset: ?>>)
// CHECK-NOT: {{tensor<|bufferization|memref.alloc|memref.copy|linalg.copy}}

// ZERO: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : memref<128x128xf32, strided<[256, 1], offset: ?>>)
// ZERO: scf.for
// ZERO-NOT: {{linalg.fill|memref.copy}}
