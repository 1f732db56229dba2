// The first warp of the producer elects the thread that issues loads; the number of the warp is known to be uniform.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step elect_producer --set elect_producer=true --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @one_consumer(
// CHECK: nvvm.setmaxregister decrease 40
// CHECK-NEXT: [[quotient:%.+]] = affine.apply #{{.*}}()[%thread_id_x]
// CHECK-NEXT: [[number:%.+]] = arith.index_cast [[quotient]] : index to i32
// CHECK-NEXT: [[uniform:%.+]], %{{.*}} = gpu.shuffle idx [[number]], %c0_i32, %c32_i32
// CHECK-NEXT: [[warp:%.+]] = arith.index_cast [[uniform]] : i32 to index
// CHECK-NEXT: [[is_first:%.+]] = arith.cmpi eq, [[warp]], %c4
// CHECK-NEXT: scf.if [[is_first]] {
// CHECK-NEXT: [[elected:%.+]] = nvvm.elect.sync -> i1
// CHECK-NEXT: scf.if [[elected]] {
// CHECK-NEXT: scf.for
// CHECK-NEXT: nvgpu.tma.async.load
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 232
// What the same thread does before the roles part stays its own.
// CHECK-NOT: nvvm.elect.sync
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @one_consumer(%loads: i1, %map: !map, %shared: memref<64x64xf16, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %thread = gpu.thread_id x
    %leads = arith.cmpi eq, %thread, %c128 : index
    %full = nvgpu.mbarrier.create -> !barriers
    scf.if %leads {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
    }
    gpu.barrier
    scf.if %loads {
      nvvm.setmaxregister decrease 40
      scf.if %leads {
        scf.for %k = %c0 to %c256 step %c64 {
          nvgpu.tma.async.load %map[%k, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
        }
      }
    } else {
      nvvm.setmaxregister increase 232
    }
    gpu.terminator
  }
  return
}

// -----

// A thread that is not the first of a warp's is not replaced by one that is elected.
func.func @other_thread(%loads: i1) {
  %c1 = arith.constant 1 : index
  %c129 = arith.constant 129 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %thread = gpu.thread_id x
    %leads = arith.cmpi eq, %thread, %c129 : index
    scf.if %loads {
      // expected-error@+1 {{tc.elect_producer: expected the first thread of the warpgroup to issue loads}}
      nvvm.setmaxregister decrease 40
      scf.if %leads {
        gpu.printf "loads"
      }
    }
    gpu.terminator
  }
  return
}

// -----

func.func @no_roles() {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  // expected-error@+1 {{tc.elect_producer: expected a launch with specialized warps}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// A condition that is no comparison.
func.func @condition(%loads: i1, %leads: i1) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.if %loads {
      // expected-error@+1 {{tc.elect_producer: expected the first thread of the warpgroup to issue loads}}
      nvvm.setmaxregister decrease 40
      scf.if %leads {
        gpu.printf "loads"
      }
    }
    gpu.terminator
  }
  return
}
