// Every run of eight elements is one 128-bit access, and the rows of a thread are unrolled.
//
// DEFINE: %{sizes} = --set block_m=32 --set block_n=64 --set block_k=32 --set warp_m=32 --set warp_n=32
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wmma --step vectorize_copies %{sizes} --split-input-file
// RUN: %{opt} | FileCheck %s

// CHECK-DAG: #[[next:.+]] = affine_map<()[s0] -> (s0 + 1)>
// CHECK-LABEL: func.func @copies(
// CHECK: [[A:%.+]] = memref.alloc() {operand_a}
// CHECK: [[B:%.+]] = memref.alloc() {operand_b}
// CHECK-NOT: {{scf.for|linalg.copy}}
// CHECK: [[a:%.+]] = vector.transfer_read %A[%i, %j], %{{.*}} {in_bounds = [true]} : memref<32x32xf16>, vector<8xf16>
// CHECK: vector.transfer_write [[a]], [[A]][%i, %j] {in_bounds = [true]}
// CHECK-SAME: : vector<8xf16>, memref<32x32xf16, #gpu.address_space<workgroup>>
// CHECK: [[i:%.+]] = affine.apply #[[next]]()[%i]
// CHECK: [[a:%.+]] = vector.transfer_read %A{{\[}}[[i]], %j]
// CHECK: vector.transfer_write [[a]], [[A]]{{\[}}[[i]], %j]
// CHECK: [[b:%.+]] = vector.transfer_read %B[%i, %j], %{{.*}} {in_bounds = [true]} : memref<32x64xf16>, vector<8xf16>
// CHECK: vector.transfer_write [[b]], [[B]][%i, %j] {in_bounds = [true]}
// CHECK-SAME: : vector<8xf16>, memref<32x64xf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-3: vector.transfer_write %{{.*}}, [[B]]
// CHECK-NOT: {{vector.transfer|linalg.copy}}
// CHECK: gpu.barrier
// CHECK-NEXT: linalg.matmul
#space = #gpu.address_space<workgroup>
#from_a = strided<[32, 1], offset: ?>
#from_b = strided<[64, 1], offset: ?>
func.func @copies(%A: memref<32x32xf16>, %B: memref<32x64xf16>, %C: memref<32x64xf32>, %i: index, %j: index) {
  %shared_a = memref.alloc() {operand_a} : memref<32x32xf16, #space>
  %shared_b = memref.alloc() {operand_b} : memref<32x64xf16, #space>
  %a = memref.subview %A[%i, %j] [2, 8] [1, 1] : memref<32x32xf16> to memref<2x8xf16, #from_a>
  %to_a = memref.subview %shared_a[%i, %j] [2, 8] [1, 1] : memref<32x32xf16, #space> to memref<2x8xf16, #from_a, #space>
  linalg.copy {operand_a} ins(%a : memref<2x8xf16, #from_a>) outs(%to_a : memref<2x8xf16, #from_a, #space>)
  %b = memref.subview %B[%i, %j] [4, 8] [1, 1] : memref<32x64xf16> to memref<4x8xf16, #from_b>
  %to_b = memref.subview %shared_b[%i, %j] [4, 8] [1, 1] : memref<32x64xf16, #space> to memref<4x8xf16, #from_b, #space>
  linalg.copy {operand_b} ins(%b : memref<4x8xf16, #from_b>) outs(%to_b : memref<4x8xf16, #from_b, #space>)
  gpu.barrier
  linalg.matmul ins(%shared_a, %shared_b : memref<32x32xf16, #space>, memref<32x64xf16, #space>)
      outs(%C : memref<32x64xf32>)
  return
}
