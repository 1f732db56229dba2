// A warp's 32 x 32 x 32 becomes products of 16 x 16 x 16, k outermost: all four of the first slice of k come before
// those of the second, and each fragment is read once. Fragments of C are read in front of the products.
//
// DEFINE: %{opt} = %stepladder-opt %s --step map_to_fragments --split-input-file --pipeline
// RUN: %{opt} wmma | FileCheck %s
// RUN: %{opt} mma_sync | FileCheck %s --check-prefix=MMA-SYNC

// CHECK-LABEL: func.func @accumulate(
// CHECK-DAG: [[a0:%.+]] = vector.transfer_read %A[%c0, %c0], %{{.*}} : memref<32x32xf16>, vector<16x16xf16>
// CHECK-DAG: [[a0_next:%.+]] = vector.transfer_read %A[%c0, %c16]
// CHECK-DAG: [[a1:%.+]] = vector.transfer_read %A[%c16, %c0]
// CHECK-DAG: [[a1_next:%.+]] = vector.transfer_read %A[%c16, %c16]
// CHECK-DAG: [[b0:%.+]] = vector.transfer_read %B[%c0, %c0], %{{.*}} : memref<32x32xf16>, vector<16x16xf16>
// CHECK-DAG: [[b1:%.+]] = vector.transfer_read %B[%c0, %c16]
// CHECK-DAG: [[b0_next:%.+]] = vector.transfer_read %B[%c16, %c0]
// CHECK-DAG: [[b1_next:%.+]] = vector.transfer_read %B[%c16, %c16]
// CHECK-DAG: [[c0:%.+]] = vector.transfer_read %C[%c0, %c0], %{{.*}} : memref<32x32xf32>, vector<16x16xf32>
// CHECK-DAG: [[c1:%.+]] = vector.transfer_read %C[%c0, %c16]
// CHECK-DAG: [[c2:%.+]] = vector.transfer_read %C[%c16, %c0]
// CHECK-DAG: [[c3:%.+]] = vector.transfer_read %C[%c16, %c16]
// CHECK-NOT: vector.transfer_read
// CHECK: [[d0:%.+]] = vector.contract {{.*}} [[a0]], [[b0]], [[c0]] : vector<16x16xf16>, vector<16x16xf16>
// CHECK-SAME: into vector<16x16xf32>
// CHECK: [[d1:%.+]] = vector.contract {{.*}} [[a0]], [[b1]], [[c1]] :
// CHECK: [[d2:%.+]] = vector.contract {{.*}} [[a1]], [[b0]], [[c2]] :
// CHECK: [[d3:%.+]] = vector.contract {{.*}} [[a1]], [[b1]], [[c3]] :
// CHECK: [[e0:%.+]] = vector.contract {{.*}} [[a0_next]], [[b0_next]], [[d0]] :
// CHECK: [[e1:%.+]] = vector.contract {{.*}} [[a0_next]], [[b1_next]], [[d1]] :
// CHECK: [[e2:%.+]] = vector.contract {{.*}} [[a1_next]], [[b0_next]], [[d2]] :
// CHECK: [[e3:%.+]] = vector.contract {{.*}} [[a1_next]], [[b1_next]], [[d3]] :
// CHECK-NEXT: vector.transfer_write [[e0]], %C[%c0, %c0] {in_bounds = [true, true]}
// CHECK-SAME: : vector<16x16xf32>, memref<32x32xf32>
// CHECK-NEXT: vector.transfer_write [[e1]], %C[%c0, %c16]
// CHECK-NEXT: vector.transfer_write [[e2]], %C[%c16, %c0]
// CHECK-NEXT: vector.transfer_write [[e3]], %C[%c16, %c16]
// CHECK-NEXT: return

// Products of 16 x 8 x 16.
// MMA-SYNC-LABEL: func.func @accumulate(
// MMA-SYNC-COUNT-16: vector.contract {{.*}} : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
// MMA-SYNC-NOT: vector.contract
// MMA-SYNC: // -----
func.func @accumulate(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  linalg.matmul ins(%A, %B : memref<32x32xf16>, memref<32x32xf16>) outs(%C : memref<32x32xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @half(
// CHECK: vector.contract {{.*}} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf16>
// CHECK-NOT: {{vector.contract|linalg}}
// CHECK: // -----
func.func @half(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf16>) {
  linalg.matmul ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf16>)
  return
}

// -----

// CHECK-LABEL: func.func @from_zero(
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<16x16xf32>
// CHECK: vector.transfer_write [[zeros]], %C[%c0, %c0]
// CHECK: vector.transfer_write [[zeros]], %C[%c16, %c0]
// CHECK: vector.contract
// CHECK-NOT: linalg
// CHECK: // -----
func.func @from_zero(%A: memref<32x16xf16>, %B: memref<16x16xf16>, %C: memref<32x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<32x16xf32>)
  linalg.matmul ins(%A, %B : memref<32x16xf16>, memref<16x16xf16>) outs(%C : memref<32x16xf32>)
  return
}

// -----

// A copy that is not vectorized becomes a loop of scalar loads and stores.
// CHECK-LABEL: func.func @copy(
// CHECK: scf.for [[i:%.+]] = %c0 to %c16
// CHECK: scf.for [[j:%.+]] = %c0 to %c16
// CHECK: [[x:%.+]] = memref.load %A{{\[}}[[i]], [[j]]]
// CHECK: memref.store [[x]], %S{{\[}}[[i]], [[j]]]
// CHECK: vector.transfer_read %S
// CHECK-NOT: linalg
// CHECK: // -----
func.func @copy(%A: memref<16x16xf16>, %S: memref<16x16xf16, 3>, %B: memref<16x16xf16>, %C: memref<16x16xf32>) {
  linalg.copy {operand_a} ins(%A : memref<16x16xf16>) outs(%S : memref<16x16xf16, 3>)
  linalg.matmul ins(%S, %B : memref<16x16xf16, 3>, memref<16x16xf16>) outs(%C : memref<16x16xf32>)
  return
}

// -----

// Fragments are read from the tiles in shared memory, not from views of them.
// CHECK-LABEL: func.func @views(
// CHECK-NOT: memref.subview
// CHECK-DAG: vector.transfer_read %S[%row, %c0], {{.*}} : memref<64x40xf16, {{.*}}>, vector<16x16xf16>
// CHECK-DAG: vector.transfer_read %T[%c0, %column], {{.*}} : memref<32x40xf16, {{.*}}>, vector<16x16xf16>
// CHECK: vector.contract
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#rows = strided<[40, 1], offset: ?>
func.func @views(%S: memref<64x40xf16, #space>, %T: memref<32x40xf16, #space>, %C: memref<16x16xf32>, %row: index,
                 %column: index) {
  %a = memref.subview %S[%row, 0] [16, 16] [1, 1] : memref<64x40xf16, #space> to memref<16x16xf16, #rows, #space>
  %b = memref.subview %T[0, %column] [16, 16] [1, 1] : memref<32x40xf16, #space> to memref<16x16xf16, #rows, #space>
  linalg.matmul ins(%a, %b : memref<16x16xf16, #rows, #space>, memref<16x16xf16, #rows, #space>)
      outs(%C : memref<16x16xf32>)
  return
}

// -----

// The width of the elements decides how deep a product of mma.sync is.
// MMA-SYNC-LABEL: func.func @i8(
// MMA-SYNC: vector.contract {{.*}} : vector<16x32xi8>, vector<32x8xi8> into vector<16x8xi32>
// MMA-SYNC-NOT: vector.contract
func.func @i8(%A: memref<16x32xi8>, %B: memref<32x8xi8>, %C: memref<16x8xi32>) {
  linalg.matmul ins(%A, %B : memref<16x32xi8>, memref<32x8xi8>) outs(%C : memref<16x8xi32>)
  return
}
