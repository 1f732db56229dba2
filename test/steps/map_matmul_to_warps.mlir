// Each warp takes warp_m x warp_n of the block's tile of C, and a fill of C is cut the same way. A second barrier stands
// behind the matmul.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through map_copies_to_threads | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through map_matmul_to_warps | FileCheck %s
// RUN: %{opt} --through map_matmul_to_warps --set stages=1 | FileCheck %s --check-prefix=ONE
// RUN: %{opt} --through map_matmul_to_warps --set warp_m=32 | FileCheck %s --check-prefix=OTHER
// RUN: %stepladder-opt %payloads/product.mlir --pipeline wmma --through map_matmul_to_warps | FileCheck %s --check-prefix=ZERO

// BEFORE: linalg.matmul ins({{.*}}) outs(%{{.*}} : memref<128x128xf32,

// Warps 0 and 1 in the first row of warps, 2 and 3 in the second.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (((s0 floordiv 32) floordiv 2) * 64)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> ((s0 floordiv 32) * 64 - ((s0 floordiv 32) floordiv 2) * 128)>
// CHECK: scf.for
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK: gpu.barrier
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[t]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[t]]]
// CHECK: memref.subview %{{.*}}{{\[}}[[i]], 0] [64, 32] [1, 1] : memref<128x32xf16, #gpu.address_space<workgroup>>
// CHECK: memref.subview %{{.*}}[0, [[j]]] [32, 64] [1, 1] : memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK: memref.subview %{{.*}}{{\[}}[[i]], [[j]]] [64, 64] [1, 1] : memref<128x128xf32,
// CHECK: linalg.matmul ins({{.*}}) outs(%{{.*}} : memref<64x64xf32,
// A slower warp may still read what the next iteration overwrites.
// CHECK-NEXT: gpu.barrier

// ONE: scf.for
// ONE: linalg.copy {operand_b}
// ONE-NEXT: gpu.barrier
// ONE: linalg.matmul
// ONE-NEXT: gpu.barrier
// ONE-NEXT: }

// OTHER: threads({{.*}}) in (%{{.*}} = %c256, %{{.*}} = %c1, %{{.*}} = %c1)
// OTHER: linalg.matmul ins(%{{.*}} : memref<32x32xf16, {{.*}}, memref<32x64xf16, {{.*}}) outs(%{{.*}} : memref<32x64xf32,

// ZERO: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : memref<64x64xf32,
// ZERO-NOT: gpu.barrier
// ZERO: scf.for
// ZERO-NOT: linalg.fill
