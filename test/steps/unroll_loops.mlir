// A loop becomes its iterations: each takes the results of the one before it, and its slice by a constant offset. A loop
// inside another goes with it.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/functions.mlir --step unroll_loops --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[x:.+]]: tensor<4x4xf16>, %[[w:.+]]: tensor<6x4x4xf16>
// CHECK-NOT: scf.for
// CHECK: tensor.extract_slice %[[w]][1, 0, 0] [1, 4, 4]
// CHECK: [[one:%.+]] = linalg.matmul ins(%[[x]],
// CHECK: tensor.extract_slice %[[w]][3, 0, 0] [1, 4, 4]
// CHECK: [[two:%.+]] = linalg.matmul ins([[one]],
// CHECK: tensor.extract_slice %[[w]][5, 0, 0] [1, 4, 4]
// CHECK: [[three:%.+]] = linalg.matmul ins([[two]],
// CHECK: return [[three]]
func.func @layers(%x: tensor<4x4xf16>, %w: tensor<6x4x4xf16>, %c: tensor<4x4xf16>) -> tensor<4x4xf16> {
  %first = arith.constant 1 : index
  %end = arith.constant 6 : index
  %step = arith.constant 2 : index
  %y = scf.for %i = %first to %end step %step iter_args(%h = %x) -> (tensor<4x4xf16>) {
    %s = tensor.extract_slice %w[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<6x4x4xf16> to tensor<4x4xf16>
    %next = linalg.matmul ins(%h, %s : tensor<4x4xf16>, tensor<4x4xf16>) outs(%c : tensor<4x4xf16>) -> tensor<4x4xf16>
    scf.yield %next : tensor<4x4xf16>
  }
  return %y : tensor<4x4xf16>
}

// -----

// CHECK-LABEL: func.func @nested(
// CHECK-COUNT-4: linalg.exp
// CHECK-NOT: linalg.exp
func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %y = scf.for %i = %zero to %two step %one iter_args(%h = %x) -> (tensor<4xf32>) {
    %z = scf.for %j = %zero to %two step %one iter_args(%g = %h) -> (tensor<4xf32>) {
      %e = linalg.exp ins(%g : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %e : tensor<4xf32>
    }
    scf.yield %z : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @never(%x: tensor<4xf32>)
// CHECK-NEXT: return %x
func.func @never(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %two to %one step %one iter_args(%h = %x) -> (tensor<4xf32>) {
    %e = linalg.exp ins(%h : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @longest(
// CHECK-COUNT-256: linalg.exp
// CHECK-NOT: linalg.exp
func.func @longest(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 256 : index
  %y = scf.for %i = %zero to %many step %one iter_args(%h = %x) -> (tensor<4xf32>) {
    %e = linalg.exp ins(%h : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @unknown(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{tc.unroll_loops: a loop around kernels; accepted: constant bounds and a positive constant step}}
  %y = scf.for %i = %zero to %n step %one iter_args(%h = %x) -> (tensor<4xf32>) {
    scf.yield %h : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @long(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 257 : index
  // expected-error@+1 {{tc.unroll_loops: a loop of 257 iterations, of which each launches kernels; accepted: at most 256}}
  %y = scf.for %i = %zero to %many step %one iter_args(%h = %x) -> (tensor<4xf32>) {
    %e = linalg.exp ins(%h : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @nest(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 65 : index
  %y = scf.for %i = %zero to %many step %one iter_args(%g = %x) -> (tensor<4xf32>) {
    // expected-error@+1 {{loops of more than 4096 iterations in all, of which each launches kernels; accepted: at most 4096}}
    %z = scf.for %j = %zero to %many step %one iter_args(%h = %g) -> (tensor<4xf32>) {
      %e = linalg.exp ins(%h : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %e : tensor<4xf32>
    }
    scf.yield %z : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// expected-error@+1 {{tc.unroll_loops: argument 1 is memref<4xf32>; accepted: functions on tensors}}
func.func @on_buffers(%x: tensor<4xf32>, %y: memref<4xf32>) {
  linalg.exp ins(%y : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
