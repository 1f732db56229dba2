// Loads of operands stand before the wait for the last MMA, in their order, while registers are left.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step hoist_operand_loads --split-input-file
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s
// RUN: sed '/^\/\/ Refused/Q' %s | %{opt} - --set block_m=256 | FileCheck %s --check-prefix=FULL

// The second load of one address is merged with the first; C itself and a predicated load stay.
// CHECK-LABEL: func.func @bias(
// CHECK: [[sums:%.+]] = scf.for
// CHECK: [[first:%.+]] = vector.load %bias[%j]
// CHECK-NEXT: [[further:%.+]] = arith.addi %j, %c8
// CHECK-NEXT: [[second:%.+]] = vector.load %bias{{\[}}[[further]]]
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: [[old:%.+]] = vector.load %C[%i, %j]
// CHECK-NEXT: arith.addf [[first]], [[old]]
// CHECK: arith.addf [[second]], [[first]]
// CHECK: scf.if
// CHECK-NEXT: vector.load %bias[%i]
// No register is left for any load.
// FULL-LABEL: func.func @bias(
// FULL: nvvm.wgmma.wait.group.sync.aligned 0
// FULL-NEXT: nvvm.barrier
// FULL-NEXT: vector.load %bias[%j]
#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @bias(%C: memref<64x64xf16>, %bias: memref<64xf16>, %i: index, %j: index, %inside: i1, %da: !a, %db: !b) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %zeros = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %sums = scf.for %k = %c0 to %c128 step %c64 iter_args(%sum = %zeros) -> (!sums) {
      %next = nvgpu.warpgroup.mma %da, %db, %sum : <tensor = memref<64x64xf16, #space>>,
        <tensor = memref<64x64xf16, #space>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
      scf.yield %next : !sums
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    nvvm.barrier
    %x = vector.load %bias[%j] : memref<64xf16>, vector<2xf16>
    %old = vector.load %C[%i, %j] : memref<64x64xf16>, vector<2xf16>
    %sum = arith.addf %x, %old : vector<2xf16>
    vector.store %sum, %C[%i, %j] : memref<64x64xf16>, vector<2xf16>
    nvvm.barrier
    %further = arith.addi %j, %c8 : index
    %y = vector.load %bias[%further] : memref<64xf16>, vector<2xf16>
    %z = vector.load %bias[%j] : memref<64xf16>, vector<2xf16>
    %other = arith.addf %y, %z : vector<2xf16>
    vector.store %other, %C[%i, %further] : memref<64x64xf16>, vector<2xf16>
    scf.if %inside {
      %last = vector.load %bias[%i] : memref<64xf16>, vector<2xf16>
      vector.store %last, %C[%i, %i] : memref<64x64xf16>, vector<2xf16>
    }
    gpu.terminator
  }
  return
}

// Refused: a launch without an MMA.

// -----

func.func @without_mma() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.hoist_operand_loads: expected one warpgroup MMA, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}
