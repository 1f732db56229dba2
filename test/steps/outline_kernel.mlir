// The body of the launch is a kernel of its own, which takes the three buffers and nothing else: constants, index
// arithmetic and the zeros of C = AB are made inside. Buffers are passed in the order of their first use. Neither the
// kernel nor the host keeps what it does not use.
//
// RUN: %stepladder-opt %s --pipeline wmma --step outline_kernel | FileCheck %s

// CHECK: module attributes {gpu.container_module}
// CHECK: func.func @matmul(
// CHECK-NOT: gpu.launch{{ }}
// CHECK-NOT: dense
// CHECK: gpu.launch_func @matmul_kernel::@matmul_kernel blocks in (%c1, %c2, %c1) threads in (%c64, %c1, %c1) args(%C
// CHECK-SAME: : memref<32x16xf32>, %A : memref<32x16xf16>, %B : memref<16x16xf16>)
// CHECK: gpu.module @matmul_kernel {
// CHECK-NEXT: gpu.func @matmul_kernel(%C: memref<32x16xf32>, %A: memref<32x16xf16>, %B: memref<16x16xf16>) kernel
// CHECK-SAME: attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 2, 1>}
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK-NOT: gpu.{{block_id x|grid_dim|block_dim|thread_id}}
// CHECK: gpu.block_id y
// CHECK-NEXT: [[row:%.+]] = affine.apply
// CHECK: memref.get_global @shared_memory
// CHECK: vector.transfer_write [[zeros]], %C{{\[}}[[row]]
// CHECK: gpu.return
// CHECK: memref.global {{.*}} @shared_memory
// CHECK-NOT: gpu.launch{{ }}
#row = affine_map<()[s0] -> (s0 * 16)>
memref.global "private" @shared_memory : memref<512xi8, #gpu.address_space<workgroup>> = uninitialized
func.func @matmul(%A: memref<32x16xf16>, %B: memref<16x16xf16>, %C: memref<32x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : vector<8xf32>
  %pad = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %y = gpu.block_id y
    %row = affine.apply #row()[%y]
    %shared = memref.get_global @shared_memory : memref<512xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %shared[%c0][] : memref<512xi8, #gpu.address_space<workgroup>>
        to memref<16x16xf16, #gpu.address_space<workgroup>>
    vector.transfer_write %zeros, %C[%row, %c0] {in_bounds = [true]} : vector<8xf32>, memref<32x16xf32>
    %a = vector.transfer_read %A[%row, %c0], %pad {in_bounds = [true]} : memref<32x16xf16>, vector<8xf16>
    vector.transfer_write %a, %tile[%c0, %c0] {in_bounds = [true]}
        : vector<8xf16>, memref<16x16xf16, #gpu.address_space<workgroup>>
    %b = vector.transfer_read %B[%c0, %c0], %pad {in_bounds = [true]} : memref<16x16xf16>, vector<8xf16>
    vector.transfer_write %b, %tile[%c1, %c0] {in_bounds = [true]}
        : vector<8xf16>, memref<16x16xf16, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}
