// Constants fold, equal values become one, and what that makes equal folds in turn; in the functions that the handle is
// to, and nowhere else.
//
// RUN: %stepladder-opt %s --pipeline %inputs/steps/clean_kernels.mlir --from clean | FileCheck %s

// The kernel: one load is left of two of the same address, and their difference is zero. Two additions become one.
// CHECK-LABEL: gpu.func @kernel
// CHECK-DAG: [[zero:%.+]] = arith.constant 0 : i32
// CHECK-DAG: [[three:%.+]] = arith.constant 3 : index
// CHECK-NEXT: memref.store [[zero]], %{{.*}}[%{{.*}}]
// CHECK-NEXT: [[next:%.+]] = arith.addi %{{.*}}, [[three]] : index
// CHECK-NEXT: memref.store [[zero]], %{{.*}}{{\[}}[[next]]]
// CHECK-NEXT: gpu.return

// The host function, which the handle is not to, stays as it is.
// CHECK-LABEL: func.func @host
// CHECK: arith.addi
// CHECK-NEXT: return

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%buffer: memref<16xi32>, %i: index) kernel {
      %c0 = arith.constant 0 : index
      %j = arith.addi %i, %c0 : index
      %first = memref.load %buffer[%i] : memref<16xi32>
      %second = memref.load %buffer[%j] : memref<16xi32>
      %difference = arith.subi %first, %second : i32
      memref.store %difference, %buffer[%j] : memref<16xi32>
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %k = arith.addi %j, %c1 : index
      %l = arith.addi %k, %c2 : index
      memref.store %difference, %buffer[%l] : memref<16xi32>
      gpu.return
    }
  }
  func.func @host(%i: index) -> index {
    %c0 = arith.constant 0 : index
    %j = arith.addi %i, %c0 : index
    return %j : index
  }
}
