// The parallel loop becomes the grid, columns on x and rows on y, and the shared tiles stand in front of the k loop.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through bufferize | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through map_to_blocks | FileCheck %s
// RUN: %{opt} --through map_to_blocks --set block_m=64 | FileCheck %s --check-prefix=OTHER

// BEFORE: scf.forall (%{{.*}}, %{{.*}}) in (2, 2)
// BEFORE-NOT: memref.alloc
// BEFORE: scf.for{{ }}
// BEFORE: memref.alloc

// CHECK-NOT: scf.forall
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c2, %{{.*}} = %c2, %{{.*}} = %c1)
// CHECK: [[x:%.+]] = gpu.block_id x
// CHECK: [[y:%.+]] = gpu.block_id y
// CHECK: [[i:%.+]] = affine.apply #{{.*}}[[y]]]
// CHECK: [[j:%.+]] = affine.apply #{{.*}}[[x]]]
// CHECK: memref.subview %{{.*}}{{\[}}[[i]], 0] [128, 128] [1, 1] : memref<256x128xf16>
// CHECK: memref.subview %{{.*}}[0, [[j]]] [128, 128] [1, 1] : memref<128x256xf16>
// CHECK: memref.subview %{{.*}}{{\[}}[[i]], [[j]]] [128, 128] [1, 1] : memref<256x256xf32>
// CHECK: memref.alloc() {operand_a}
// CHECK: memref.alloc() {operand_b}
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK-NOT: scf.forall

// OTHER: gpu.launch blocks({{.*}}) in (%{{.*}} = %c2, %{{.*}} = %c4, %{{.*}} = %c1)
