// Two consumers take tiles in turn: each every second one, from a state of the pipeline that skips the other's tiles.
// Named barriers 4 and 5 hand the tensor cores over, in front of the loop over k and behind it; the second consumer
// lets the first begin.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step pingpong_consumers --set schedule=pingpong \
// DEFINE:   --split-input-file
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s
// RUN: sed '/^\/\/ Refused/Q' %s | %{opt} - --set stages=3 | FileCheck %s --check-prefix=THREE
// RUN: %refused 2 %{opt} %s --set persistent_blocks=0 | FileCheck %s --check-prefix=NO-TILES
// RUN: %refused 2 %{opt} %s --set stages=1 | FileCheck %s --check-prefix=ONE-STAGE

// NO-TILES: step 'pingpong_consumers': persistent_blocks must be above 0, so that each block computes several tiles
// ONE-STAGE: step 'pingpong_consumers': stages must be above 1: each consumer begins with a different stage

// Six steps of k in a pipeline of four stages: two stages on, and the parity turns or not.
// CHECK-DAG: #[[first:.+]] = affine_map<()[s0] -> (s0 * 6 - ((s0 * 3) floordiv 2) * 4)>
// CHECK-DAG: #[[passes:.+]] = affine_map<()[s0] -> (((s0 * 3) floordiv 2) mod 2)>
// CHECK-DAG: #[[stage:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// CHECK-DAG: #[[turns:.+]] = affine_map<()[s0] -> ((s0 floordiv 4) mod 2)>
// CHECK-LABEL: func.func @six_steps(
// CHECK: gpu.launch {{.*}} threads({{[^)]*}}) in (%{{[^)]*}} = %c384, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// Each consumer has a tile of sums of its own.
// CHECK: [[both:%.+]] = memref.alloc() {operand_c} : memref<2x64x64xf32, #gpu.address_space<workgroup>>

// The producer moves behind the second consumer. It loads all tiles, in order.
// CHECK: [[loads:%.+]] = arith.cmpi eq, %warpgroup, %c2
// CHECK-NEXT: scf.if [[loads]] {
// CHECK-NEXT: nvvm.setmaxregister decrease 40
// CHECK-NEXT: [[one:%.+]] = arith.cmpi eq, %thread, %c256
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: scf.for %{{.*}} = %block to %c32 step %c3 {
// CHECK-NEXT: nvgpu.tma.async.load
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 232
// CHECK: [[uniform:%.+]], %{{.*}} = gpu.shuffle idx
// CHECK: [[number:%.+]] = arith.index_cast [[uniform]] : i32 to index
// CHECK-NEXT: [[skipped:%.+]] = arith.muli [[number]], %c3
// CHECK-NEXT: [[begin:%.+]] = arith.addi %block, [[skipped]]
// CHECK-NEXT: [[odd:%.+]] = affine.apply #[[passes]]()[[[number]]]
// CHECK-NEXT: [[begin_parity:%.+]] = arith.cmpi eq, [[odd]], %c1
// CHECK-NEXT: [[begin_stage:%.+]] = affine.apply #[[first]]()[[[number]]]
// CHECK-NEXT: [[own:%.+]] = arith.addi [[uniform]], %c4_i32
// CHECK-NEXT: [[other:%.+]] = arith.subi %c5_i32, [[uniform]]
// CHECK-NEXT: [[second:%.+]] = arith.cmpi eq, [[number]], %c1
// CHECK-NEXT: scf.if [[second]] {
// CHECK-NEXT: nvvm.barrier.arrive id = [[other]] number_of_threads = %c256_i32
// CHECK-NEXT: }
// CHECK-NEXT: [[sums:%.+]] = memref.subview [[both]]{{\[}}[[number]], 0, 0] [1, 64, 64]
// CHECK-NEXT: scf.for [[tile:%.+]] = [[begin]] to %c32 step %c6
// CHECK-SAME: iter_args([[start:%\w+]] = [[begin_stage]], [[parity:%\w+]] = [[begin_parity]])
// CHECK: nvvm.barrier id = [[own]] number_of_threads = %c256_i32
// CHECK-NEXT: [[steps:%.+]]:3 = scf.for %{{.*}} = %c0 to %c384 step %c64
// CHECK-SAME: iter_args(%{{\w+}} = [[start]], %{{\w+}} = [[parity]], %{{\w+}} = %{{\w+}})
// CHECK-NEXT: nvgpu.warpgroup.mma %
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.barrier.arrive id = [[other]] number_of_threads = %c256_i32
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: "tc.warpgroup_mma_store"([[steps]]#2, [[sums]])
// CHECK-NEXT: linalg.copy ins([[sums]] :
// CHECK: [[total:%.+]] = arith.addi [[steps]]#0, %c6
// CHECK-NEXT: [[odd:%.+]] = affine.apply #[[turns]]()[[[total]]]
// CHECK-NEXT: [[turned:%.+]] = arith.cmpi eq, [[odd]], %c1
// CHECK-NEXT: [[next_stage:%.+]] = affine.apply #[[stage]]()[[[total]]]
// CHECK-NEXT: [[next_parity:%.+]] = arith.xori [[steps]]#1, [[turned]]
// CHECK-NEXT: scf.yield [[next_stage]], [[next_parity]]
// CHECK-NOT: nvvm.barrier
// CHECK: // -----

// Six steps are two passes over three stages: stage and parity stay.
// THREE-LABEL: func.func @six_steps(
// THREE: scf.for {{.*}} to %c32 step %c6 iter_args({{.*}} = %c0, {{.*}} = %{{.*}})
// THREE: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @six_steps(%thread: index, %warpgroup: index, %block: index, %map: !map, %shared: memref<64x64xf16, #space>,
                     %a: !tile, %b: !tile, %C: memref<64x64xf32>) {
  %true = arith.constant true
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %late = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %loads = arith.cmpi eq, %warpgroup, %c1 : index
    scf.if %loads {
      nvvm.setmaxregister decrease 40
      %one = arith.cmpi eq, %thread, %c128 : index
      scf.if %one {
        scf.for %tile = %block to %c32 step %c3 {
          nvgpu.tma.async.load %map[%c0, %tile], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
        }
      }
    } else {
      nvvm.setmaxregister increase 232
      %last:2 = scf.for %tile = %block to %c32 step %c3 iter_args(%start = %c0, %parity = %false) -> (index, i1) {
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %d:3 = scf.for %k = %c0 to %c384 step %c64 iter_args(%stage = %start, %phase = %parity, %sum = %zero)
            -> (index, i1, !sums) {
          %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
          %next_stage = arith.addi %stage, %c1 : index
          %next_phase = arith.xori %phase, %true : i1
          scf.yield %next_stage, %next_phase, %next : index, i1, !sums
        }
        nvvm.wgmma.wait.group.sync.aligned 0
        nvgpu.warpgroup.mma.store %d#2, %late : !sums to memref<64x64xf32, #space>
        linalg.copy ins(%late : memref<64x64xf32, #space>) outs(%C : memref<64x64xf32>)
        scf.yield %d#0, %d#1 : index, i1
      }
    }
    gpu.terminator
  }
  return
}

// -----

// No loop over k: the turn lasts from the wait for the tiles to the product. A view of the tile of sums becomes one of
// the own tile.
// CHECK-LABEL: func.func @one_step(
// CHECK: [[both:%.+]] = memref.alloc() {operand_c} : memref<2x64x64xf32, #gpu.address_space<workgroup>>
// CHECK: nvvm.setmaxregister increase
// CHECK: [[sums:%.+]] = memref.subview [[both]][%{{.*}}, 0, 0] [1, 64, 64]
// CHECK: scf.for {{.*}} to %c32 step %c6
// CHECK: nvvm.barrier id =
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity
// CHECK: nvgpu.warpgroup.mma %
// CHECK-NEXT: nvvm.barrier.arrive id =
// CHECK-NEXT: "tc.warpgroup_mma_store"
// CHECK: [[inside:%.+]] = memref.subview [[sums]][0, 0] {{\[}}%rows, 64]
// CHECK: linalg.copy ins([[inside]] :
// CHECK-NOT: nvvm.barrier
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#rows = strided<[64, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_step(%thread: index, %warpgroup: index, %block: index, %rows: index, %a: !tile, %b: !tile,
                    %C: memref<?x64xf32>) {
  %true = arith.constant true
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %ticks = arith.constant 1000 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %late = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %loads = arith.cmpi eq, %warpgroup, %c1 : index
    scf.if %loads {
      nvvm.setmaxregister decrease 40
      %one = arith.cmpi eq, %thread, %c128 : index
      scf.if %one {
        nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c256 : !barriers
      }
    } else {
      nvvm.setmaxregister increase 232
      %last:2 = scf.for %tile = %block to %c32 step %c3 iter_args(%stage = %c0, %parity = %false) -> (index, i1) {
        nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks : !barriers
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
        nvgpu.warpgroup.mma.store %d, %late : !sums to memref<64x64xf32, #space>
        %inside = memref.subview %late[0, 0] [%rows, 64] [1, 1]
            : memref<64x64xf32, #space> to memref<?x64xf32, strided<[64, 1]>, #space>
        linalg.copy ins(%inside : memref<?x64xf32, strided<[64, 1]>, #space>) outs(%C : memref<?x64xf32>)
        scf.yield %stage, %parity : index, i1
      }
    }
    gpu.terminator
  }
  return
}

// Refused below.
// -----

#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_role(%one: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{tc.pingpong_consumers: expected a launch with specialized warps}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.if %one {
      gpu.barrier
    }
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_consumers(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c384 = arith.constant 384 : index
  // expected-error@+1 {{tc.pingpong_consumers: 2 consumer warpgroups: the ping-pong schedule starts from one}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
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
func.func @one_tile(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{a block computes one tile, and a second consumer needs a next one: make_persistent must run}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
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
func.func @one_tile_of_many_steps(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{a block computes one tile, and a second consumer needs a next one: make_persistent must run}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
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
func.func @bounds_from_argument(%n: index, %loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      %last:2 = scf.for %tile = %c0 to %c4 step %c1 iter_args(%stage = %c0, %parity = %false) -> (index, i1) {
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        // expected-error@+1 {{tc.pingpong_consumers: the bounds of the loop over k are not constant}}
        %d = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sums) {
          %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
          scf.yield %next : !sums
        }
        nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
        scf.yield %stage, %parity : index, i1
      }
    }
    gpu.terminator
  }
  return
}

// -----

func.func @no_product() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.pingpong_consumers: expected one warpgroup MMA, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @block_from_argument(%n: index, %loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32>) {
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{tc.pingpong_consumers: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %late = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      %last:2 = scf.for %tile = %c0 to %c4 step %c1 iter_args(%stage = %c0, %parity = %false) -> (index, i1) {
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
          %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
          scf.yield %next : !sums
        }
        nvgpu.warpgroup.mma.store %d, %late : !sums to memref<64x64xf32, #space>
        linalg.copy ins(%late : memref<64x64xf32, #space>) outs(%C : memref<64x64xf32>)
        scf.yield %stage, %parity : index, i1
      }
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @exponential(%thread: index, %warpgroup: index, %a: !tile, %b: !tile, %C: memref<64x64xf32>) {
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %late = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %loads = arith.cmpi eq, %warpgroup, %c1 : index
    scf.if %loads {
      nvvm.setmaxregister decrease 40
      %one = arith.cmpi eq, %thread, %c128 : index
      scf.if %one {
        nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c256 : !barriers
      }
    } else {
      %last:2 = scf.for %tile = %c0 to %c4 step %c1 iter_args(%stage = %c0, %parity = %false) -> (index, i1) {
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
          %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
          scf.yield %next : !sums
        }
        nvgpu.warpgroup.mma.store %d, %late : !sums to memref<64x64xf32, #space>
        // expected-error@+1 {{expected a copy, an addition or an elementwise linalg.generic of the product as epilogue, found linalg.exp}}
        linalg.exp ins(%late : memref<64x64xf32, #space>) outs(%C : memref<64x64xf32>)
        scf.yield %stage, %parity : index, i1
      }
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @not_read(%thread: index, %warpgroup: index, %a: !tile, %b: !tile) {
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{tc.pingpong_consumers: expected one op that reads the accumulator tile, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %late = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %loads = arith.cmpi eq, %warpgroup, %c1 : index
    scf.if %loads {
      nvvm.setmaxregister decrease 40
      %one = arith.cmpi eq, %thread, %c128 : index
      scf.if %one {
        nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c256 : !barriers
      }
    } else {
      %last:2 = scf.for %tile = %c0 to %c4 step %c1 iter_args(%stage = %c0, %parity = %false) -> (index, i1) {
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
          %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
          scf.yield %next : !sums
        }
        nvgpu.warpgroup.mma.store %d, %late : !sums to memref<64x64xf32, #space>
        scf.yield %stage, %parity : index, i1
      }
    }
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.pingpong_consumers: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
