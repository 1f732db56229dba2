// The producer's thread initializes the mbarriers and loads the larger matrix to all stages before the wait, and skips
// these steps behind it. The next kernel may begin behind the wait.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set early_weights=true --step load_weights_early --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// Persistent blocks: two stages, of the first tile.
// CHECK-LABEL: func.func @persistent(
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c16, %c64] : memref<*xbf16>
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64] {read_early, read_once} : memref<*xbf16>
// CHECK: [[thread:%.+]] = gpu.thread_id x
// CHECK-NOT: arith.cmpi eq, [[thread]], %c0
// CHECK: [[leads:%.+]] = arith.cmpi eq, [[thread]], %c128
// CHECK-NEXT: scf.if [[leads]] {
// CHECK-NEXT: nvgpu.mbarrier.init
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NOT: scf.if
// CHECK-DAG: [[tiles:%.+]] = arith.addi %block, %c2
// CHECK-DAG: [[last:%.+]] = arith.minsi [[tiles]], %c8
// CHECK: scf.for {{.*}} = %block to [[last]] step %c2 {
// CHECK: [[steps:%.+]] = arith.minsi %k, %c128
// CHECK: scf.for {{.*}} = %c0 to [[steps]] step %c64 {
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx
// CHECK-NEXT: nvgpu.tma.async.load [[b_map]]
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: gpu.barrier
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK: scf.for [[tile:%.+]] = %block to %c8 step %c2 {
// CHECK: scf.for [[k:%.+]] = %c0 to %k step %c64 {
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity
// CHECK-NEXT: [[follows:%.+]] = arith.cmpi sge, [[tile]],
// CHECK: [[deep:%.+]] = arith.cmpi sge, [[k]],
// CHECK: [[late:%.+]] = arith.ori [[follows]], [[deep]]
// CHECK-NEXT: scf.if [[late]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx
// CHECK-NEXT: }
// CHECK-NEXT: nvgpu.tma.async.load [[a_map]]
// CHECK-NEXT: scf.if [[late]] {
// CHECK-NEXT: nvgpu.tma.async.load [[b_map]]
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!a = !nvgpu.tensormap.descriptor<tensor = memref<16x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
!b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @persistent(%A: memref<16x512xbf16>, %B: memref<512x512xbf16>, %block: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 10240 : index
  %ticks = arith.constant 1000 : index
  %parity = arith.constant false
  %any_a = memref.cast %A : memref<16x512xbf16> to memref<*xbf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c16, %c64] : memref<*xbf16> -> !a
  %any_b = memref.cast %B : memref<512x512xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !b
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x16x64xbf16, #space>
    %b = memref.alloc() {operand_b} : memref<2x64x64xbf16, #space>
    %a_tile = memref.subview %a[0, 0, 0] [1, 16, 64] [1, 1, 1] : memref<2x16x64xbf16, #space> to memref<16x64xbf16, strided<[64, 1]>, #space>
    %b_tile = memref.subview %b[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xbf16, #space> to memref<64x64xbf16, strided<[64, 1]>, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %thread = gpu.thread_id x
    %is_first = arith.cmpi eq, %thread, %c0 : index
    scf.if %is_first {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvvm.fence.mbarrier.init
    }
    gpu.barrier
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      scf.for %tile = %block to %c8 step %c2 {
        %column = arith.muli %tile, %c64 : index
        scf.for %step = %c0 to %k step %c64 {
          nvgpu.mbarrier.try_wait.parity %full[%c0], %parity, %ticks : !barriers
          nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
          nvgpu.tma.async.load %a_map[%step, %c0], %full[%c0] to %a_tile : !a, !barriers -> memref<16x64xbf16, strided<[64, 1]>, #space>
          nvgpu.tma.async.load %b_map[%column, %step], %full[%c0] to %b_tile : !b, !barriers -> memref<64x64xbf16, strided<[64, 1]>, #space>
        }
      }
    }
    gpu.terminator
  }
  return
}

// -----

// One step of k: the bytes are expected, and the larger matrix is loaded, before the wait only. The mbarriers are not
// initialized in the launch, and the loads stay behind the barrier. The next kernel begins when blocks exit, as before.
// CHECK-LABEL: func.func @one_step(
// CHECK: scf.if
// CHECK-NOT: scf.for
// CHECK: nvgpu.mbarrier.arrive.expect_tx
// CHECK-NEXT: nvgpu.tma.async.load
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NOT: nvgpu.mbarrier.arrive.expect_tx
// CHECK: nvgpu.tma.async.load
// CHECK-NOT: nvgpu.tma.async.load
// CHECK-NOT: launch_dependents
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!a = !nvgpu.tensormap.descriptor<tensor = memref<16x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
!b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @one_step(%A: memref<16x64xbf16>, %B: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 10240 : index
  %any_a = memref.cast %A : memref<16x64xbf16> to memref<*xbf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c16, %c64] : memref<*xbf16> -> !a
  %any_b = memref.cast %B : memref<64x64xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !b
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<16x64xbf16, #space>
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    nvvm.griddepcontrol wait
    %thread = gpu.thread_id x
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a : !a, !barriers -> memref<16x64xbf16, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !b, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// Matrices of the same size: which of them holds weights is not known.
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @same_size(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %true = arith.constant true
  %any_a = memref.cast %A : memref<64x64xbf16> to memref<*xbf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*xbf16> -> !map
  %any_b = memref.cast %B : memref<64x64xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !map
  // expected-error@+1 {{tc.load_weights_early: expected operands of different sizes, found two of 4096 elements}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<64x64xbf16, #space>
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    scf.if %true {
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a : !map, !barriers -> memref<64x64xbf16, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !map, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A workspace, which a kernel before the matmul writes.
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!a = !nvgpu.tensormap.descriptor<tensor = memref<16x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
!b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @workspace(%A: memref<16x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %true = arith.constant true
  %B = memref.alloc() {workspace} : memref<64x64xbf16>
  %any_a = memref.cast %A : memref<16x64xbf16> to memref<*xbf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c16, %c64] : memref<*xbf16> -> !a
  %any_b = memref.cast %B : memref<64x64xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !b
  // expected-error@+1 {{tc.load_weights_early: a preceding kernel writes the larger operand, which would be read early}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<16x64xbf16, #space>
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    scf.if %true {
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a : !a, !barriers -> memref<16x64xbf16, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !b, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A kernel that does not wait for the one before it.
func.func @no_wait() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.load_weights_early: expected one nvvm.griddepcontrol wait in the launch, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.load_weights_early: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
