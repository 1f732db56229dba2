// All threads wait for the kernel before this one, before the first access to global memory, and then let the next one
// be launched.
//
// RUN: %stepladder-opt %s --pipeline %transforms/functions/rows.mlir --step wait_at_start \
// RUN:   --set dependent_launch=true --split-input-file --verify-diagnostics | FileCheck %s
// RUN: %stepladder-opt %s --pipeline %transforms/functions/elementwise.mlir --step wait_at_start \
// RUN:   --set dependent_launch=true --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @copied(
// CHECK: gpu.launch
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: memref.load %x
// CHECK-NEXT: memref.store
// CHECK-NEXT: gpu.terminator
func.func @copied(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %value = memref.load %x[%tx] : memref<64xf32>
    memref.store %value, %y[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.wait_at_start: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
