// The copies are plain vector loads and stores, and all of them say that they are aligned to 16 bytes: without that,
// LLVM takes a 128-bit access apart.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step lower_transfers --split-input-file | FileCheck %s

// CHECK-LABEL: gpu.func @copy(
// CHECK: [[x:%.+]] = vector.load %A[%c0] {alignment = 16 : i64} : memref<64xf16>, vector<8xf16>
// CHECK-NEXT: vector.store [[x]], %S[%c0] {alignment = 16 : i64}
// CHECK-SAME: : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
// CHECK-NEXT: gpu.return
gpu.module @kernels {
  gpu.func @copy(%A: memref<64xf16>, %S: memref<64xf16, #gpu.address_space<workgroup>>) kernel {
    %pad = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    %0 = vector.transfer_read %A[%c0], %pad {in_bounds = [true]} : memref<64xf16>, vector<8xf16>
    vector.transfer_write %0, %S[%c0] {in_bounds = [true]}
        : vector<8xf16>, memref<64xf16, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// -----

// What is aligned to less, and says so, stays: pairs of sums.
// CHECK-LABEL: gpu.func @pairs(
// CHECK-NEXT: vector.load %C{{.*}} {alignment = 8 : i64} : memref<64x64xf32>, vector<2xf32>
// CHECK-NEXT: vector.store {{.*}} {alignment = 8 : i64} : memref<64x64xf32>, vector<2xf32>
// CHECK-NEXT: vector.load %H{{.*}} {alignment = 4 : i64} : memref<64x64xf16>, vector<2xf16>
// CHECK-NEXT: vector.store {{.*}} {alignment = 4 : i64} : memref<64x64xf16>, vector<2xf16>
// CHECK-NEXT: gpu.return
gpu.module @kernels {
  gpu.func @pairs(%C: memref<64x64xf32>, %H: memref<64x64xf16>, %i: index) kernel {
    %0 = vector.load %C[%i, %i] {alignment = 8 : i64} : memref<64x64xf32>, vector<2xf32>
    vector.store %0, %C[%i, %i] {alignment = 8 : i64} : memref<64x64xf32>, vector<2xf32>
    %1 = vector.load %H[%i, %i] {alignment = 4 : i64} : memref<64x64xf16>, vector<2xf16>
    vector.store %1, %H[%i, %i] {alignment = 4 : i64} : memref<64x64xf16>, vector<2xf16>
    gpu.return
  }
}

// -----

// Zeros of two dimensions, where sums stay in memory, are stored row by row.
// CHECK-LABEL: gpu.func @zeros(
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-NEXT: vector.store [[zeros]], %C[%c0, %c0] {alignment = 16 : i64}
// CHECK-NEXT: vector.store [[zeros]], %C[%c1, %c0] {alignment = 16 : i64}
// CHECK-NEXT: gpu.return
gpu.module @kernels {
  gpu.func @zeros(%C: memref<16x16xf32>) kernel {
    %zeros = arith.constant dense<0.0> : vector<2x4xf32>
    %c0 = arith.constant 0 : index
    vector.transfer_write %zeros, %C[%c0, %c0] {in_bounds = [true, true]} : vector<2x4xf32>, memref<16x16xf32>
    gpu.return
  }
}
