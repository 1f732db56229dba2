// Behind the initialization of barriers, a kernel lets the next one begin and waits for the one before: all threads,
// before the first access to global memory.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step enable_dependent_launch --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s
// RUN: %stepladder-opt %s --pipeline wgmma --step enable_dependent_launch --set block_n=8 --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s --check-prefix=FEW
// RUN: %stepladder-opt %s --pipeline wgmma --step enable_dependent_launch --set launch_trigger=exit \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=EXIT

// In tiles of few columns, it waits first.
// FEW-LABEL: func.func @after_prologue(
// FEW: gpu.barrier
// FEW-NEXT: nvvm.griddepcontrol wait
// FEW-NEXT: nvvm.griddepcontrol launch_dependents
// FEW-NEXT: memref.load %A

// The next kernel begins when blocks have exited.
// EXIT-LABEL: func.func @after_prologue(
// EXIT: gpu.barrier
// EXIT-NEXT: nvvm.griddepcontrol wait
// EXIT-NEXT: memref.load %A
// EXIT-NOT: launch_dependents

// CHECK-LABEL: func.func @after_prologue(
// CHECK: scf.if
// CHECK: nvgpu.mbarrier.init
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: memref.load %A
// CHECK-NOT: griddepcontrol
// CHECK: // -----
!barriers = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
func.func @after_prologue(%A: memref<64xf32>, %B: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %thread = gpu.thread_id x
    %leader = arith.cmpi eq, %thread, %c0 : index
    %full = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvvm.fence.mbarrier.init
    }
    gpu.barrier
    %value = memref.load %A[%c0] : memref<64xf32>
    gpu.barrier
    memref.store %value, %B[%c0] : memref<64xf32>
    gpu.terminator
  }
  return
}

// -----

// The blocks of a cluster meet at its own barrier.
// CHECK-LABEL: func.func @clusters(
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: memref.store
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: gpu.terminator
// CHECK: // -----
func.func @clusters(%x: f32, %A: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c2, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    nvvm.cluster.arrive
    nvvm.cluster.wait
    memref.store %x, %A[%c0] : memref<64xf32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  return
}

// -----

// A barrier that only some threads reach ends no prologue.
func.func @no_barrier(%n: i1, %x: f32, %A: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.enable_dependent_launch: expected a barrier after the initialization of mbarriers}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    scf.if %n {
      gpu.barrier
    }
    memref.store %x, %A[%c0] : memref<64xf32>
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.enable_dependent_launch: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}

// -----

// expected-error@unknown {{tc.enable_dependent_launch: expected one gpu.launch, found 2}}
func.func @two_launches() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.barrier
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.barrier
    gpu.terminator
  }
  return
}
