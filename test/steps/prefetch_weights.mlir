// Consumers prefetch the rows of the first two steps of k, of the matrix that is read early, before anything else.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set early_weights=true --step prefetch_weights --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// Two boxes of 64 rows for each step, and 128 consumers. The tile is the first of the block.
// CHECK-LABEL: func.func @two_boxes(
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create
// CHECK: [[consumes:%.+]] = arith.cmpi ult, [[thread:%.+]], %c128
// CHECK-NEXT: scf.if [[consumes]] {
// CHECK-NOT: nvgpu.
// CHECK: [[tiles:%.+]] = arith.minsi
// CHECK: scf.for [[tile:%.+]] = %block to [[tiles]] step %c2 {
// CHECK: [[steps:%.+]] = arith.minsi {{.*}}
// CHECK: scf.for [[k:%.+]] = %c0 to [[steps]] step %c64 {
// CHECK-NEXT: [[pointer:%.+]] = memref.extract_aligned_pointer_as_index %B
// CHECK-NEXT: scf.for [[line:%.+]] = [[thread]] to %c64 step %c128 {
// CHECK-NEXT: [[row:%.+]] = arith.addi [[k]], [[line]]
// CHECK-NEXT: [[below:%.+]] = arith.cmpi ult, [[row]], %c512
// CHECK-NEXT: scf.if [[below]] {
// CHECK: [[beside:%.+]] = arith.cmpi ult, {{.+}}, %c512
// CHECK-NEXT: scf.if [[beside]] {
// CHECK: [[line:%.+]] = arith.muli [[row]], %c512
// CHECK-NEXT: [[place:%.+]] = arith.addi [[line]],
// CHECK-NEXT: [[bytes:%.+]] = arith.muli [[place]], %c2
// CHECK-NEXT: [[sum:%.+]] = arith.addi [[pointer]], [[bytes]]
// CHECK-NEXT: [[number:%.+]] = arith.index_cast [[sum]] : index to i64
// CHECK-NEXT: [[address:%.+]] = llvm.inttoptr [[number]] : i64 to !llvm.ptr<1>
// CHECK-NEXT: nvvm.prefetch level = L2, [[address]]
// CHECK: nvvm.prefetch level = L2
// CHECK-NOT: nvvm.prefetch
// CHECK: scf.if {{.+}} {
// CHECK-NEXT: nvgpu.mbarrier.init [[full]]
// CHECK: nvgpu.tma.async.load
// CHECK: gpu.barrier
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @two_boxes(%B: memref<512x512xbf16>, %block: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 16384 : index
  %any_b = memref.cast %B : memref<512x512xbf16> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] {read_early} : memref<*xbf16> -> !b
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<2x64x64xbf16, #space>
    %left = memref.subview %b[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xbf16, #space> to memref<64x64xbf16, strided<[64, 1]>, #space>
    %right = memref.subview %b[1, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xbf16, #space> to memref<64x64xbf16, strided<[64, 1], offset: 4096>, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %thread = gpu.thread_id x
    %leads = arith.cmpi eq, %thread, %c128 : index
    scf.if %leads {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvvm.fence.mbarrier.init
      nvgpu.tma.prefetch.descriptor %b_map : !b
      scf.for %tile = %block to %c8 step %c2 {
        %column = arith.muli %tile, %c128 : index
        %beside = arith.addi %column, %c64 : index
        scf.for %step = %c0 to %k step %c64 {
          nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
          nvgpu.tma.async.load %b_map[%column, %step], %full[%c0] to %left : !b, !barriers -> memref<64x64xbf16, strided<[64, 1]>, #space>
          nvgpu.tma.async.load %b_map[%beside, %step], %full[%c0] to %right : !b, !barriers -> memref<64x64xbf16, strided<[64, 1], offset: 4096>, #space>
        }
      }
    }
    gpu.barrier
    nvvm.griddepcontrol wait
    nvvm.griddepcontrol launch_dependents
    gpu.terminator
  }
  return
}

// -----

// A part of a buffer: the kernel would take a pointer to the whole of it.
// CHECK-LABEL: func.func @part(
// CHECK-NOT: nvvm.prefetch
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @part(%B: memref<512x1024xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %true = arith.constant true
  %part = memref.subview %B[0, 512] [512, 512] [1, 1] : memref<512x1024xbf16> to memref<512x512xbf16, strided<[1024, 1], offset: 512>>
  %any_b = memref.cast %part : memref<512x512xbf16, strided<[1024, 1], offset: 512>> to memref<*xbf16>
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] {read_early} : memref<*xbf16> -> !b
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<64x64xbf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    scf.if %true {
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b : !b, !barriers -> memref<64x64xbf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// No matrix is read early.
func.func @nothing_early() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.prefetch_weights: expected loads of weights before the wait for the previous kernel}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}
