// Copies by cp.async get the hint, in inline PTX; a copy of fewer bytes, which has no such form here, is refused.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step evict_copies_first --split-input-file
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s

// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: [[matrix:%.+]]: !llvm.ptr<1>, [[box:%.+]]: !llvm.ptr<3>
// CHECK: [[hint:%.+]] = llvm.mlir.constant(1364590687093260288 : i64)
// CHECK-NEXT: nvvm.inline_ptx "cp.async.cg.shared.global.L2::cache_hint [{$r0}], [{$r1}], 16, {$r2};"
// CHECK-SAME: ([[box]], [[matrix]], [[hint]] : !llvm.ptr<3>, !llvm.ptr<1>, i64)
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.shared.global
!c = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @matmul(%C: memref<64x64xf16>) {
  %c64 = arith.constant 64 : index
  %any = memref.cast %C : memref<64x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] {copied_once} : memref<*xf16> -> !c
  return
}
llvm.func @kernel(%matrix: !llvm.ptr<1>, %box: !llvm.ptr<3>) {
  nvvm.cp.async.shared.global %box, %matrix, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  llvm.return
}

// -----

!c = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                 interleave = none>
func.func @matmul(%C: memref<64x64xf16>) {
  %c64 = arith.constant 64 : index
  %any = memref.cast %C : memref<64x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] {copied_once} : memref<*xf16> -> !c
  return
}
llvm.func @short(%matrix: !llvm.ptr<1>, %box: !llvm.ptr<3>) {
  // expected-error@+1 {{tc.evict_copies_first: expected a copy of 16 bytes}}
  nvvm.cp.async.shared.global %box, %matrix, 8, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
  llvm.return
}

// -----

// Copies of parts of lines, or of a matrix that is read again, stay as they are.
// CHECK-LABEL: llvm.func @again(
// CHECK-NEXT: nvvm.cp.async.shared.global
llvm.func @again(%matrix: !llvm.ptr<1>, %box: !llvm.ptr<3>) {
  nvvm.cp.async.shared.global %box, %matrix, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  llvm.return
}
