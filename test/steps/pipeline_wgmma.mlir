// A step of k waits for the product of the step before, and releases the stage that this one has read. Behind the loop
// the last product is waited for, and its stage released.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step pipeline_wgmma --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @two_stages(
// CHECK: [[empty:%.+]] = nvgpu.mbarrier.create
// CHECK: [[all:%.+]]:3 = scf.for [[k:%.+]] = %c64 to %c256 step %c64
// CHECK-SAME: iter_args([[stage:%\w+]] = %c0, [[sum:%\w+]] = %{{\w+}}, [[previous:%\w+]] = %c0)
// CHECK-NEXT: [[next:%.+]] = nvgpu.warpgroup.mma %a, %b, [[sum]] {transposeB} :
// CHECK: [[one:%.+]] = arith.cmpi eq, %{{.*}}, %c0
// The first step has no product before it. It is the one at the lower bound.
// CHECK: [[later:%.+]] = arith.cmpi ne, [[k]], %c64
// CHECK-NEXT: [[releases:%.+]] = arith.andi [[one]], [[later]]
// CHECK-NEXT: scf.if [[releases]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[previous]]]
// CHECK-NEXT: }
// CHECK-NEXT: [[following:%.+]] = arith.subi %c1, [[stage]]
// CHECK-NEXT: scf.yield [[following]], [[next]], [[stage]] :
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: [[one:%.+]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[all]]#2]
// CHECK-NEXT: }
// CHECK-NEXT: nvgpu.warpgroup.mma.store [[all]]#1, %C
// CHECK-NOT: {{nvgpu.mbarrier.arrive|wgmma}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#in_warpgroup = affine_map<()[s0] -> (s0 mod 128)>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_stages(%a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %empty = nvgpu.mbarrier.create -> !barriers
    %thread = gpu.thread_id x
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d:2 = scf.for %k = %c64 to %c256 step %c64 iter_args(%stage = %c0, %sum = %zero) -> (index, !sums) {
      %next = nvgpu.warpgroup.mma %a, %b, %sum {transposeB, waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      %number = affine.apply #in_warpgroup()[%thread]
      %one = arith.cmpi eq, %number, %c0 : index
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%stage] : !barriers -> !token
      }
      %following = arith.subi %c1, %stage : index
      scf.yield %following, %next : index, !sums
    }
    nvgpu.warpgroup.mma.store %d#1, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

// A product of a column-major A, which nvgpu has no op for.
// CHECK-LABEL: func.func @column_major(
// CHECK: "tc.warpgroup_mma"(%a, %b, %{{.*}}) {{[<{]+}}transposeA, transposeB, waitGroup = 1 : i64
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @column_major(%one: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %empty = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = scf.for %k = %c0 to %c128 step %c64 iter_args(%sum = %zero) -> (!sums) {
      %next = "tc.warpgroup_mma"(%a, %b, %sum) {transposeA, transposeB, waitGroup = 0 : i64}
          : (!tile, !tile, !sums) -> !sums
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
      }
      scf.yield %next : !sums
    }
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

// With one stage there is nothing to keep in flight: the next product needs the stage that the last one reads.
// CHECK-LABEL: func.func @one_stage(
// CHECK: nvgpu.warpgroup.mma %a, %b, %{{.*}} {transposeB, waitGroup = 0 : i64}
// CHECK-NEXT: scf.if %one {
// CHECK-NEXT: nvgpu.mbarrier.arrive
// CHECK-NOT: {{nvgpu.mbarrier.arrive|wgmma.wait}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!token = !nvgpu.mbarrier.token
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_stage(%one: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<1x1x64x64xf16, #space>
    %empty = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = scf.for %k = %c0 to %c128 step %c64 iter_args(%sum = %zero) -> (!sums) {
      %next = nvgpu.warpgroup.mma %a, %b, %sum {transposeB, waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
      }
      scf.yield %next : !sums
    }
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

// k of one step: the loop is that over tiles, which carries no sums.
// CHECK-LABEL: func.func @one_step(
// CHECK: scf.for
// CHECK: nvgpu.warpgroup.mma %a, %b, %{{.*}} {waitGroup = 0 : i64}
// CHECK-NEXT: scf.if %one {
// CHECK-NEXT: nvgpu.mbarrier.arrive
// CHECK-NOT: {{nvgpu.mbarrier.arrive|wgmma.wait}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_step(%one: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.for %tile = %c0 to %c4 step %c1 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
      }
      nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @no_release(%a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.pipeline_wgmma: expected one release of a stage per step, found 0}}
    %d = scf.for %k = %c0 to %c128 step %c64 iter_args(%sum = %zero) -> (!sums) {
      %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      scf.yield %next : !sums
    }
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_releases(%one: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<2x1x64x64xf16, #space>
    %empty = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.pipeline_wgmma: expected one release of a stage per step, found 2}}
    %d = scf.for %k = %c0 to %c128 step %c64 iter_args(%sum = %zero) -> (!sums) {
      %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
      }
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%c1] : !barriers -> !token
      }
      scf.yield %next : !sums
    }
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_products(%a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.pipeline_wgmma: expected one warpgroup MMA, found 2}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
    %e = nvgpu.warpgroup.mma %a, %b, %d : !tile, !tile, !sums -> !sums
    nvgpu.warpgroup.mma.store %e, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

func.func @no_product() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.pipeline_wgmma: expected one warpgroup MMA, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.pipeline_wgmma: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
