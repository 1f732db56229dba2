// Each warp takes warp_m x warp_n of the block's tile of C, and a fill of C is cut the same way. A second barrier
// stands behind the matmul.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wmma --step map_matmul_to_warps --split-input-file --verify-diagnostics
// DEFINE: %{sizes} = --set block_m=64 --set block_n=64 --set warp_n=32
// RUN: %{opt} %{sizes} --set warp_m=32 | FileCheck %s
// RUN: %{opt} %{sizes} --set warp_m=16 --without stage_in_shared_memory,prefetch_to_registers \
// RUN:   | FileCheck %s --check-prefix=UNSTAGED

// Warps 0 and 1 in the first row of warps, 2 and 3 in the second.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (((s0 floordiv 32) floordiv 2) * 32)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> ((s0 floordiv 32) * 32 - ((s0 floordiv 32) floordiv 2) * 64)>
// CHECK-LABEL: func.func @accumulate(
// CHECK: threads({{.*}}) in (%{{.*}} = %c128, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: gpu.barrier
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK-DAG: [[i:%.+]] = affine.apply #[[row]]()[[[t]]]
// CHECK-DAG: [[j:%.+]] = affine.apply #[[column]]()[[[t]]]
// CHECK-DAG: [[a:%.+]] = memref.subview %A{{\[}}[[i]], 0] [32, 16] [1, 1]
// CHECK-DAG: [[b:%.+]] = memref.subview %B[0, [[j]]] [16, 32] [1, 1]
// CHECK-DAG: [[c:%.+]] = memref.subview %C{{\[}}[[i]], [[j]]] [32, 32] [1, 1]
// CHECK: linalg.matmul ins([[a]], [[b]] : {{.*}}) outs([[c]] : memref<32x32xf32,
// A slower warp may still read what the next iteration overwrites.
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: // -----

// Tiles that are not in shared memory need no barrier behind the matmul.
// UNSTAGED: threads({{.*}}) in (%{{.*}} = %c256, %{{.*}} = %c1, %{{.*}} = %c1)
// UNSTAGED: linalg.matmul ins(%{{.*}} : memref<16x16xf16, {{.*}}, memref<16x32xf16, {{.*}}) outs(%
// UNSTAGED-SAME: : memref<16x32xf32,
// UNSTAGED-NEXT: gpu.terminator
func.func @accumulate(%A: memref<64x16xf16>, %B: memref<16x64xf16>, %C: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.barrier
    linalg.matmul ins(%A, %B : memref<64x16xf16>, memref<16x64xf16>) outs(%C : memref<64x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// No barrier stands behind the fill: a warp only touches its own part of C.
// CHECK-LABEL: func.func @from_zero(
// CHECK: [[i:%.+]] = affine.apply
// CHECK: [[j:%.+]] = affine.apply
// CHECK: [[c:%.+]] = memref.subview %C{{\[}}[[i]], [[j]]] [32, 32] [1, 1]
// CHECK: linalg.fill ins(%{{.*}} : f32) outs([[c]] : memref<32x32xf32,
// CHECK-NOT: {{gpu.barrier|linalg.fill}}
// CHECK: linalg.matmul
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: gpu.terminator
func.func @from_zero(%A: memref<64x16xf16>, %B: memref<16x64xf16>, %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    linalg.fill ins(%zero : f32) outs(%C : memref<64x64xf32>)
    linalg.matmul ins(%A, %B : memref<64x16xf16>, memref<16x64xf16>) outs(%C : memref<64x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// A thread would have a tile of its own, which others do not copy to.
// expected-error@unknown {{operands of linalg.matmul must be arguments or in shared memory}}
func.func @private(%A: memref<64x16xf16>, %B: memref<16x64xf16>, %C: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() : memref<64x16xf16>
    linalg.copy ins(%A : memref<64x16xf16>) outs(%tile : memref<64x16xf16>)
    linalg.matmul ins(%tile, %B : memref<64x16xf16>, memref<16x64xf16>) outs(%C : memref<64x64xf32>)
    gpu.terminator
  }
  return
}
