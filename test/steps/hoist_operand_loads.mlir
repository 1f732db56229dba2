// Loads of operands stand before the wait for the last MMA, in their order, while registers are left.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step hoist_operand_loads --split-input-file
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s
// RUN: sed '/^\/\/ Refused/Q' %s | %{opt} - --set block_m=256 | FileCheck %s --check-prefix=FULL

// The second load of one address is merged with the first; C itself stays.
// CHECK-LABEL: func.func @bias(
// CHECK: [[sums:%.+]] = scf.for
// CHECK: [[further:%.+]] = arith.addi %j, %c8
// CHECK-NEXT: [[first:%.+]] = vector.load %bias[%j]
// CHECK-NEXT: [[second:%.+]] = vector.load %bias{{\[}}[[further]]]
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: [[old:%.+]] = vector.load %C[%i, %j]
// CHECK-NEXT: arith.addf [[first]], [[old]]
// CHECK: arith.addf [[second]], [[first]]
// No register is left for any load.
// FULL-LABEL: func.func @bias(
// FULL: nvvm.wgmma.wait.group.sync.aligned 0
// FULL-NEXT: nvvm.barrier
// FULL-NEXT: vector.load %bias[%j]
#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @bias(%C: memref<64x64xf16>, %bias: memref<64xf16>, %i: index, %j: index, %da: !a, %db: !b) {
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
    gpu.terminator
  }
  return
}

// -----

// Loads under conditions, as at the edges of C, move with them. The first two have the same conditions; those of the
// third imply them, so that it is the first load. Loads of an else region and of a loop stay.
// CHECK-LABEL: func.func @edges(
// CHECK: [[sums:%.+]] = scf.for
// CHECK-DAG: [[in_rows:%.+]] = arith.cmpi ult, %i, %rows
// CHECK-DAG: [[in_columns:%.+]] = arith.cmpi ugt, %columns, %c0
// CHECK: [[inside:%.+]] = arith.andi [[in_rows]], [[in_columns]]
// CHECK: [[loaded:%.+]]:2 = scf.if [[inside]] -> (vector<2xf16>, f16) {
// CHECK-NEXT: [[first:%.+]] = vector.load %bias[%i]
// CHECK-NEXT: [[second:%.+]] = memref.load %bias[%j]
// CHECK-NEXT: scf.yield [[first]], [[second]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %{{.+}}, %{{.+}} : vector<2xf16>, f16
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NOT: vector.load %bias[%i]
// CHECK: vector.store [[loaded]]#0, %C[%i, %i]
// CHECK: memref.store [[loaded]]#1, %C[%i, %j]
// CHECK: vector.store [[loaded]]#0, %C[%i, %j]
// CHECK: } else {
// CHECK-NEXT: vector.load %bias[%columns]
// CHECK: scf.for
// CHECK: vector.load %bias
#space = #gpu.address_space<workgroup>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @edges(%C: memref<64x64xf16>, %bias: memref<64xf16>, %i: index, %j: index, %rows: index, %columns: index,
                 %da: !a, %db: !b) {
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
    %in_rows = arith.cmpi ult, %i, %rows : index
    scf.if %in_rows {
      %in_columns = arith.cmpi ugt, %columns, %c0 : index
      scf.if %in_columns {
        %x = vector.load %bias[%i] : memref<64xf16>, vector<2xf16>
        vector.store %x, %C[%i, %i] : memref<64x64xf16>, vector<2xf16>
        %y = memref.load %bias[%j] : memref<64xf16>
        memref.store %y, %C[%i, %j] : memref<64x64xf16>
      }
    }
    nvvm.barrier
    scf.if %in_rows {
      %in_columns = arith.cmpi ugt, %columns, %c8 : index
      scf.if %in_columns {
        %x = vector.load %bias[%i] : memref<64xf16>, vector<2xf16>
        vector.store %x, %C[%i, %j] : memref<64x64xf16>, vector<2xf16>
      }
    }
    scf.if %in_rows {
      nvvm.barrier
    } else {
      %x = vector.load %bias[%columns] : memref<64xf16>, vector<2xf16>
      vector.store %x, %C[%i, %columns] : memref<64x64xf16>, vector<2xf16>
    }
    scf.for %n = %c0 to %c64 step %c8 {
      %x = vector.load %bias[%n] : memref<64xf16>, vector<2xf16>
      vector.store %x, %C[%i, %n] : memref<64x64xf16>, vector<2xf16>
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
