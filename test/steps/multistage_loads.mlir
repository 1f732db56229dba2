// In front of the loop all stages but one are filled. The loop issues the loads of as many steps later, behind its
// product and the release of its stage, as long as there are such steps.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wgmma_multistage --step multistage_loads --split-input-file
// RUN: %{opt} --set stages=4 --verify-diagnostics | FileCheck %s
// RUN: %{opt} --set stages=3 --verify-diagnostics | FileCheck %s --check-prefix=THREE
// RUN: %refused 2 %{opt} --set stages=1 | FileCheck %s --check-prefix=ONE

// ONE: error: step 'multistage_loads': stages must be at least 2, but stages = 1

// Of three stages, two are filled, and loads are two steps ahead.
// THREE-LABEL: func.func @four_stages(
// THREE: scf.for %{{.*}} = %c64 to %c192 step %c64
// THREE: scf.for [[k:%\w+]] = %c64 to %c576 step %c64
// THREE: arith.addi [[k]], %c128

// CHECK-LABEL: func.func @four_stages(
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create
// CHECK-NEXT: [[empty:%.+]] = nvgpu.mbarrier.create
// Three of eight steps, from the lower bound of 64 on.
// CHECK: [[filled:%.+]]:2 = scf.for [[k:%.+]] = %c64 to %c256 step %c64
// CHECK-SAME: iter_args([[stage:%\w+]] = %c0, [[parity:%\w+]] = %false) -> (index, i1) {
// CHECK-NEXT: scf.if %leader {
// CHECK-NEXT: [[other:%.+]] = arith.xori [[parity]], %true
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[empty]]{{\[}}[[stage]]], [[other]],
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]]{{\[}}[[stage]]], %c8192
// CHECK-NEXT: [[tile:%.+]] = memref.subview %{{.*}}{{\[}}[[stage]], 0, 0, 0]
// CHECK-NEXT: nvgpu.tma.async.load %map{{\[}}[[k]], %c0], [[full]]{{\[}}[[stage]]] to [[tile]]
// CHECK-NEXT: }
// The state of the pipeline goes on as in the loop; there are no products yet.
// CHECK-NEXT: [[following:%.+]] = arith.addi [[stage]], %c1
// CHECK-NEXT: [[wraps:%.+]] = arith.cmpi eq, [[following]], %c4
// CHECK-NOT: nvgpu
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: [[sums:%.+]] = scf.for [[k:%.+]] = %c64 to %c576 step %c64
// CHECK-SAME: iter_args([[stage:%\w+]] = %c0, [[parity:%\w+]] = %false, [[sum:%\w+]] = %{{\w+}},
// CHECK-SAME: [[ahead:%\w+]] = [[filled]]#0, [[ahead_parity:%\w+]] = [[filled]]#1)
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[full]]{{\[}}[[stage]]], [[parity]],
// CHECK-NEXT: [[next:%.+]] = nvgpu.warpgroup.mma %a, %b, [[sum]]
// CHECK-NEXT: scf.if %leader {
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[stage]]]
// CHECK-NEXT: }
// CHECK: [[later:%.+]] = arith.addi [[k]], %c192
// CHECK-NEXT: [[there:%.+]] = arith.cmpi ult, [[later]], %c576
// CHECK-NEXT: [[issues:%.+]] = arith.andi %leader, [[there]]
// CHECK: scf.if [[issues]] {
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[empty]]{{\[}}[[ahead]]],
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]]{{\[}}[[ahead]]], %c8192
// CHECK-NEXT: [[tile:%.+]] = memref.subview %{{.*}}{{\[}}[[ahead]], 0, 0, 0]
// CHECK-NEXT: nvgpu.tma.async.load %map{{\[}}[[later]], %c0], [[full]]{{\[}}[[ahead]]] to [[tile]]
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#offset = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 4>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @four_stages(%leader: i1, %map: !map, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %true = arith.constant true
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c576 = arith.constant 576 : index
  %bytes = arith.constant 8192 : index
  %ticks = arith.constant 1000 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<4x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d:3 = scf.for %k = %c64 to %c576 step %c64 iter_args(%stage = %c0, %parity = %false, %sum = %zero)
        -> (index, i1, !sums) {
      scf.if %leader {
        %other = arith.xori %parity, %true : i1
        nvgpu.mbarrier.try_wait.parity %empty[%stage], %other, %ticks : !barriers
        nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : !barriers
        %tile = memref.subview %shared[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
            : memref<4x1x64x64xf16, #space> to memref<64x64xf16, #offset, #space>
        nvgpu.tma.async.load %map[%k, %c0], %full[%stage] to %tile : !map, !barriers
            -> memref<64x64xf16, #offset, #space>
      }
      nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks : !barriers
      %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      scf.if %leader {
        %token = nvgpu.mbarrier.arrive %empty[%stage] : !barriers -> !token
      }
      %following = arith.addi %stage, %c1 : index
      %wraps = arith.cmpi eq, %following, %c4 : index
      %next_stage = arith.select %wraps, %c0, %following : index
      %flipped = arith.xori %parity, %true : i1
      %next_parity = arith.select %wraps, %flipped, %parity : i1
      scf.yield %next_stage, %next_parity, %next : index, i1, !sums
    }
    nvgpu.warpgroup.mma.store %d#2, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

// Four stages and two steps of k: both are filled, and none is left to issue.
// CHECK-LABEL: func.func @two_steps(
// CHECK: scf.for {{.*}} = %c0 to %c128 step %c64 iter_args({{.*}}) -> (index, i1) {
// CHECK: nvgpu.tma.async.load
// CHECK: [[later:%.+]] = arith.addi %{{.*}}, %c192
// CHECK-NEXT: arith.cmpi ult, [[later]], %c128
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#offset = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 4>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_steps(%leader: i1, %map: !map, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %true = arith.constant true
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %ticks = arith.constant 1000 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<4x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d:3 = scf.for %k = %c0 to %c128 step %c64 iter_args(%stage = %c0, %parity = %false, %sum = %zero)
        -> (index, i1, !sums) {
      scf.if %leader {
        %other = arith.xori %parity, %true : i1
        nvgpu.mbarrier.try_wait.parity %empty[%stage], %other, %ticks : !barriers
        %tile = memref.subview %shared[%stage, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
            : memref<4x1x64x64xf16, #space> to memref<64x64xf16, #offset, #space>
        nvgpu.tma.async.load %map[%k, %c0], %full[%stage] to %tile : !map, !barriers
            -> memref<64x64xf16, #offset, #space>
      }
      %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      %next_stage = arith.addi %stage, %c1 : index
      %next_parity = arith.xori %parity, %true : i1
      scf.yield %next_stage, %next_parity, %next : index, i1, !sums
    }
    nvgpu.warpgroup.mma.store %d#2, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

// k of one step has no loop.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT: scf.for
// CHECK: nvgpu.warpgroup.mma %a
// CHECK-NOT: scf.for
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_step(%a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @no_loads(%a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.multistage_loads: expected one point where loads are issued in the loop, found 0}}
    %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
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
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @bounds_from_argument(%leader: i1, %n: index, %map: !map, %a: !tile, %b: !tile,
                                %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.multistage_loads: the bounds of the loop over k are not constant}}
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sums) {
      scf.if %leader {
        nvgpu.tma.async.load %map[%k, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
      }
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
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_places(%leader: i1, %map: !map, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    // expected-error@+1 {{tc.multistage_loads: expected one point where loads are issued in the loop, found 2}}
    %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
      scf.if %leader {
        nvgpu.tma.async.load %map[%k, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
      }
      scf.if %leader {
        nvgpu.tma.async.load %map[%k, %c1], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
      }
      %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
      scf.yield %next : !sums
    }
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

func.func @no_product() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.multistage_loads: expected one warpgroup MMA, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.multistage_loads: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
