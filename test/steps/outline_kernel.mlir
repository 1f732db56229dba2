// The body of the launch is a kernel of its own, which takes the three buffers and nothing else: constants, index
// arithmetic and the zeros of C = AB are made inside.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through pack_shared_memory | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through outline_kernel | FileCheck %s
// RUN: %stepladder-opt %payloads/product.mlir --pipeline wmma --through outline_kernel | FileCheck %s --check-prefix=ZERO

// BEFORE-NOT: gpu.func
// BEFORE: gpu.launch blocks(

// CHECK-NOT: gpu.launch{{ }}
// CHECK: module attributes {gpu.container_module}
// CHECK: func.func @matmul([[A:%.+]]: memref<256x128xf16>, [[B:%.+]]: memref<128x256xf16>, [[C:%.+]]: memref<256x256xf32>)
// CHECK: gpu.launch_func @matmul_kernel::@matmul_kernel blocks in (%c2, %c2, %c1) threads in (%c128, %c1, %c1) args([[C]] : memref<256x256xf32>, [[A]] : memref<256x128xf16>, [[B]] : memref<128x256xf16>)
// CHECK: gpu.module @matmul_kernel {
// CHECK-NEXT: gpu.func @matmul_kernel(%C: memref<256x256xf32>, %A: memref<256x128xf16>, %B: memref<128x256xf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 2, 1>}
// CHECK: memref.global {{.*}} @shared_memory
// CHECK-NOT: gpu.launch{{ }}

// ZERO: gpu.launch_func @matmul_kernel::@matmul_kernel
// ZERO-SAME: args(%A : memref<256x128xf16>, %B : memref<128x256xf16>, %C : memref<256x256xf32>)
// ZERO: gpu.func @matmul_kernel(%A: memref<256x128xf16>, %B: memref<128x256xf16>, %C: memref<256x256xf32>) kernel
// ZERO: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<16x16xf32>
// ZERO: scf.for {{.*}} iter_args(%{{.*}} = [[zeros]], %{{.*}} = [[zeros]],
