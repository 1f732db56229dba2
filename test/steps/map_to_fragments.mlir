// A warp's 64 x 64 x 32 becomes 32 products of 16 x 16 x 16, k outermost: all sixteen of the first slice of k come before
// those of the second, and each fragment is read once. Fragments of C are read in front of the products.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through vectorize_copies | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through map_to_fragments | FileCheck %s
// RUN: %{opt} --through map_to_fragments | FileCheck %s --check-prefix=COUNT
// RUN: %{opt} --through map_to_fragments --set warp_m=32 --set block_k=16 | FileCheck %s --check-prefix=OTHER
// RUN: %stepladder-opt %payloads/accumulate_f16.mlir --pipeline wmma --through map_to_fragments | FileCheck %s --check-prefix=HALF
// RUN: %stepladder-opt %payloads/product.mlir --pipeline wmma --through map_to_fragments | FileCheck %s --check-prefix=ZERO

// BEFORE-NOT: vector.contract
// BEFORE: linalg.matmul ins({{.*}}) outs(%{{.*}} : memref<64x64xf32,

// CHECK-NOT: linalg.
// CHECK: gpu.barrier
// CHECK: [[a0:%.+]] = vector.transfer_read %{{.*}}[%{{.*}}, %c0], %{{.*}} : memref<128x32xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>
// CHECK: [[a0_next:%.+]] = vector.transfer_read %{{.*}}[%{{.*}}, %c16], %{{.*}} : memref<128x32xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>
// CHECK: [[b0:%.+]] = vector.transfer_read %{{.*}}[%c0, %{{.*}}], %{{.*}} : memref<32x128xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>
// CHECK: [[b1:%.+]] = vector.transfer_read %{{.*}}[%c0, %{{.*}}], %{{.*}} : memref<32x128xf16, #gpu.address_space<workgroup>>, vector<16x16xf16>
// CHECK: [[c0:%.+]] = vector.transfer_read {{.*}} : memref<256x256xf32>, vector<16x16xf32>
// CHECK: [[d0:%.+]] = vector.contract {{.*}} [[a0]], [[b0]], [[c0]] : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
// CHECK: vector.contract {{.*}} [[a0]], [[b1]], %{{.*}}
// CHECK-COUNT-14: vector.contract
// CHECK: vector.contract {{.*}} [[a0_next]], %{{.*}}, [[d0]] :
// CHECK-COUNT-15: vector.contract
// CHECK-NOT: {{linalg|vector.contract}}
// CHECK-COUNT-16: vector.transfer_write %{{.*}} : vector<16x16xf32>, memref<256x256xf32>
// CHECK-NOT: vector.transfer_write

// COUNT: gpu.barrier
// COUNT-COUNT-8: vector<16x16xf16>
// COUNT-COUNT-8: vector<16x16xf16>
// COUNT-COUNT-16: {{transfer_read .*}}vector<16x16xf32>
// COUNT-NOT: vector.transfer_read
// COUNT-COUNT-32: vector.contract

// OTHER: gpu.barrier
// OTHER-COUNT-8: vector.contract
// OTHER-NOT: vector.contract

// HALF-COUNT-32: vector.contract {{.*}} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf16>

// ZERO: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<16x16xf32>
// ZERO-COUNT-16: vector.transfer_write [[zeros]], %{{.*}} : vector<16x16xf32>, memref<256x256xf32>
// ZERO: scf.for
