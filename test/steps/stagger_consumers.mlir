// The second consumer waits before its last three steps of six, until the first one has issued all of its MMAs.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step stagger_consumers --set stagger=3 --set stages=5 --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @six_steps(
// CHECK: nvvm.setmaxregister increase 232
// CHECK: [[uniform:%.+]], %{{.*}} = gpu.shuffle idx
// CHECK-DAG: [[number:%.+]] = arith.index_cast [[uniform]] : i32 to index
// CHECK-DAG: [[own:%.+]] = arith.addi [[uniform]], %c4_i32
// CHECK-DAG: [[before:%.+]] = arith.addi [[uniform]], %c3_i32
// CHECK-DAG: [[follows:%.+]] = arith.cmpi ugt, [[number]], %c0
// CHECK-DAG: [[is_followed:%.+]] = arith.cmpi ult, [[number]], %c1
// CHECK: scf.for [[k:%.+]] = %c0 to %c384 step %c64
// CHECK-NEXT: [[is_late:%.+]] = arith.cmpi eq, [[k]], %c192
// CHECK-NEXT: [[waits:%.+]] = arith.andi [[is_late]], [[follows]]
// CHECK-NEXT: scf.if [[waits]] {
// CHECK-NEXT: nvvm.barrier id = [[before]] number_of_threads = %c256_i32
// CHECK-NEXT: }
// CHECK-NEXT: nvgpu.warpgroup.mma %
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: scf.if [[is_followed]] {
// CHECK-NEXT: nvvm.barrier.arrive id = [[own]] number_of_threads = %c256_i32
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @six_steps(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      nvvm.setmaxregister increase 232
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c384 step %c64 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      nvvm.wgmma.wait.group.sync.aligned 0
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
func.func @three_steps(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c384 = arith.constant 384 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      nvvm.setmaxregister decrease 40
    } else {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      // expected-error@+1 {{tc.stagger_consumers: 3 of 3 steps cannot wait in a pipeline of 5 stages}}
      %d = scf.for %k = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (!sums) {
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
func.func @one_consumer(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{tc.stagger_consumers: expected two consumer warpgroups or more}}
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
func.func @one_step(%loads: i1, %a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c384 = arith.constant 384 : index
  // expected-error@+1 {{tc.stagger_consumers: expected a loop over k}}
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
func.func @one_role(%a: !tile, %b: !tile, %C: memref<64x64xf32, #space>) {
  %c1 = arith.constant 1 : index
  %c384 = arith.constant 384 : index
  // expected-error@+1 {{tc.stagger_consumers: expected a launch with specialized warps}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
    nvgpu.warpgroup.mma.store %d, %C : !sums to memref<64x64xf32, #space>
    gpu.terminator
  }
  return
}
