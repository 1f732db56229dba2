// A read that is masked by all of its elements or none is a load under a condition. Writes of fewer than 16 bytes are
// stores with the alignment that they have.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step lower_masked_copies --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @reads(
// CHECK-SAME: [[A:%[a-zA-Z0-9]+]]: memref<100x36xf16>
// CHECK: [[value:%.+]] = scf.if %{{.*}} -> (vector<4xf16>) {
// CHECK-NEXT: [[load:%.+]] = vector.load [[A]][%{{.*}}, %{{.*}}] {alignment = 8 : i64} : memref<100x36xf16>, vector<4xf16>
// CHECK-NEXT: scf.yield [[load]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %{{.*}} : vector<4xf16>
// CHECK: vector.store [[value]], %{{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xf16>
// A read without a mask, and a write of 16 bytes, stay.
// CHECK: [[plain:%.+]] = vector.transfer_read [[A]]{{.*}} : memref<100x36xf16>, vector<8xf16>
// CHECK: vector.transfer_write [[plain]]
// A read of nothing.
// CHECK: vector.store %cst{{.*}} {alignment = 4 : i64} : {{.*}}, vector<2xf16>
// CHECK: gpu.return
#space = #gpu.address_space<workgroup>
func.func private @sizes() attributes {size_m = 100, size_n = 32, size_k = 36, operand_bits = 16, a_layout = "row", b_layout = "row"}
gpu.module @reads {
  gpu.func @reads(%A: memref<100x36xf16>, %tile: memref<32x32xf16, #space>, %i: index, %k: index, %inside: i1) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f16
    %count = arith.select %inside, %c4, %c0 : index
    %mask = vector.create_mask %count : vector<4xi1>
    %0 = vector.transfer_read %A[%i, %k], %zero, %mask {in_bounds = [true]} : memref<100x36xf16>, vector<4xf16>
    vector.transfer_write %0, %tile[%i, %k] {in_bounds = [true]} : vector<4xf16>, memref<32x32xf16, #space>
    %1 = vector.transfer_read %A[%k, %i], %zero {in_bounds = [true]} : memref<100x36xf16>, vector<8xf16>
    vector.transfer_write %1, %tile[%k, %i] {in_bounds = [true]} : vector<8xf16>, memref<32x32xf16, #space>
    %none = arith.constant dense<false> : vector<2xi1>
    %2 = vector.transfer_read %A[%k, %k], %zero, %none {in_bounds = [true]} : memref<100x36xf16>, vector<2xf16>
    vector.transfer_write %2, %tile[%k, %k] {in_bounds = [true]} : vector<2xf16>, memref<32x32xf16, #space>
    gpu.return
  }
}

// -----

func.func private @sizes() attributes {size_m = 100, size_n = 32, size_k = 36, operand_bits = 16, a_layout = "row", b_layout = "row"}
gpu.module @parts {
  gpu.func @parts(%A: memref<100x36xf16>, %C: memref<100x36xf16>, %count: index) kernel {
    %zero = arith.constant 0.0 : f16
    %mask = vector.create_mask %count : vector<4xi1>
    // expected-error@+1 {{tc.lower_masked_copies: expected a mask of 4 elements or none}}
    %0 = vector.transfer_read %A[%count, %count], %zero, %mask {in_bounds = [true]} : memref<100x36xf16>, vector<4xf16>
    vector.transfer_write %0, %C[%count, %count] {in_bounds = [true]} : vector<4xf16>, memref<100x36xf16>
    gpu.return
  }
}

// -----

func.func private @sizes() attributes {size_m = 100, size_n = 32, size_k = 36, operand_bits = 16, a_layout = "row", b_layout = "row"}
gpu.module @given {
  gpu.func @given(%A: memref<100x36xf16>, %C: memref<100x36xf16>, %i: index, %mask: vector<4xi1>) kernel {
    %zero = arith.constant 0.0 : f16
    // expected-error@+1 {{tc.lower_masked_copies: expected a mask of 4 elements or none}}
    %0 = vector.transfer_read %A[%i, %i], %zero, %mask {in_bounds = [true]} : memref<100x36xf16>, vector<4xf16>
    vector.transfer_write %0, %C[%i, %i] {in_bounds = [true]} : vector<4xf16>, memref<100x36xf16>
    gpu.return
  }
}

// -----

func.func private @sizes() attributes {size_m = 100, size_n = 32, size_k = 36, operand_bits = 16, a_layout = "row", b_layout = "row"}
gpu.module @some {
  gpu.func @some(%A: memref<100x36xf16>, %C: memref<100x36xf16>, %i: index) kernel {
    %zero = arith.constant 0.0 : f16
    %mask = arith.constant dense<[true, true, false, true]> : vector<4xi1>
    // expected-error@+1 {{tc.lower_masked_copies: expected a mask of 4 elements or none}}
    %0 = vector.transfer_read %A[%i, %i], %zero, %mask {in_bounds = [true]} : memref<100x36xf16>, vector<4xf16>
    vector.transfer_write %0, %C[%i, %i] {in_bounds = [true]} : vector<4xf16>, memref<100x36xf16>
    gpu.return
  }
}
