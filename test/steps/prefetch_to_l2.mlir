// The producer's thread prefetches the boxes of the larger matrix that the first k steps of its first tile load. If
// the next kernel could begin before the block waits, it may begin behind the last load.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set prefetch_steps=4 --step prefetch_to_l2 --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// Persistent blocks: one tile of the loop over tiles, and four steps of k, or as many as there are.
// CHECK-LABEL: func.func @persistent(
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64] {read_once} : memref<*xbf16> -> <tensor = memref<64x64xbf16
// CHECK: gpu.barrier
// CHECK-NEXT: [[thread:%.+]] = gpu.thread_id x
// CHECK-NEXT: [[leads:%.+]] = arith.cmpi eq, [[thread]], %c128
// CHECK-NEXT: scf.if [[leads]] {
// CHECK-DAG: [[tiles:%.+]] = arith.addi %block, %c2
// CHECK-DAG: [[last:%.+]] = arith.minsi [[tiles]], %c8
// CHECK: scf.for [[tile:%.+]] = %block to [[last]] step %c2 {
// CHECK: [[column:%.+]] = arith.muli [[tile]], %c64
// CHECK: [[steps:%.+]] = arith.minsi %k, %c256
// CHECK: scf.for [[k:%.+]] = %c0 to [[steps]] step %c64 {
// CHECK: [[map:%.+]] = builtin.unrealized_conversion_cast [[b_map]]
// CHECK-NEXT: [[x:%.+]] = arith.index_cast [[column]] : index to i32
// CHECK-NEXT: [[y:%.+]] = arith.index_cast [[k]] : index to i32
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.prefetch [[map]], box{{\[}}[[x]], [[y]]]
// CHECK-NOT: nvvm.cp.async.bulk.tensor.prefetch
// CHECK: nvvm.griddepcontrol wait
// CHECK-NOT: nvvm.cp.async.bulk.tensor.prefetch
// CHECK: nvgpu.tma.async.load
// CHECK: nvgpu.tma.async.load
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: }
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
    %a = memref.alloc() {operand_a} : memref<16x64xbf16, #space>
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    %thread = gpu.thread_id x
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      scf.for %tile = %block to %c8 step %c2 {
        %column = arith.muli %tile, %c64 : index
        scf.for %step = %c0 to %k step %c64 {
          nvgpu.mbarrier.try_wait.parity %full[%c0], %parity, %ticks : !barriers
          nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
          nvgpu.tma.async.load %a_map[%step, %c0], %full[%c0] to %a : !a, !barriers -> memref<16x64xbf16, #space>
          nvgpu.tma.async.load %b_map[%column, %step], %full[%c0] to %b : !b, !barriers -> memref<64x64xbf16, #space>
        }
      }
    }
    gpu.terminator
  }
  return
}

// -----

// Matrices of the same size, and one step of k: both are prefetched, without a loop.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT: read_once
// CHECK: scf.if
// CHECK-NOT: scf.for
// CHECK: nvvm.cp.async.bulk.tensor.prefetch
// CHECK: nvvm.cp.async.bulk.tensor.prefetch
// CHECK: nvvm.griddepcontrol wait
// CHECK: nvgpu.tma.async.load
// CHECK: nvgpu.tma.async.load
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @one_step(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 16384 : index
  %any_a = memref.cast %A : memref<64x64xbf16> to memref<*xbf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*xbf16> -> !map
  %any_b = memref.cast %B : memref<64x64xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<64x64xbf16, #space>
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    %thread = gpu.thread_id x
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a : !map, !barriers -> memref<64x64xbf16, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !map, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A block that waits first lets the next kernel begin where it did. Its producer initializes the mbarriers, and
// prefetches before it waits for other threads.
// CHECK-LABEL: func.func @waits_first(
// CHECK: gpu.launch
// CHECK: [[leads:%.+]] = arith.cmpi eq, %{{.+}}, %c128
// CHECK: scf.if [[leads]] {
// CHECK-NEXT: nvgpu.mbarrier.init
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.cp.async.bulk.tensor.prefetch
// CHECK: gpu.barrier
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @waits_first(%B: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 8192 : index
  %any_b = memref.cast %B : memref<64x64xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %thread = gpu.thread_id x
    %is_first = arith.cmpi eq, %thread, %c0 : index
    scf.if %is_first {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
    }
    gpu.barrier
    nvvm.griddepcontrol wait
    nvvm.griddepcontrol launch_dependents
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !map, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A kernel without a trigger, which the next one begins behind, gets none.
// CHECK-LABEL: func.func @at_exit(
// CHECK: nvvm.cp.async.bulk.tensor.prefetch
// CHECK: nvvm.griddepcontrol wait
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @at_exit(%B: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 8192 : index
  %any_b = memref.cast %B : memref<64x64xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xbf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %thread = gpu.thread_id x
    %is_first = arith.cmpi eq, %thread, %c0 : index
    scf.if %is_first {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
    }
    gpu.barrier
    nvvm.griddepcontrol wait
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !map, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// A kernel that does not wait for the one before it.
func.func @no_wait() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.prefetch_to_l2: expected one nvvm.griddepcontrol wait in the launch, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

func.func @no_loads() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.prefetch_to_l2: expected TMA loads at one point of the launch, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    gpu.terminator
  }
  return
}

// -----

// Loads by a block whose warps have no roles of their own.
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @no_producer(%A: memref<64x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %any = memref.cast %A : memref<64x64xbf16> to memref<*xbf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xbf16> -> !map
  // expected-error@+1 {{tc.prefetch_to_l2: expected TMA loads by one thread of a producer warpgroup}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %a : !map, !barriers -> memref<64x64xbf16, #space>
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.prefetch_to_l2: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
