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
func.func @matmul(%A: tensor<64x64xf16>, %B: tensor<64x64xf16>, %C: tensor<64x64xf16>) -> tensor<64x64xf16> {
  %c = linalg.matmul ins(%A, %B : tensor<64x64xf16>, tensor<64x64xf16>) outs(%C : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %c : tensor<64x64xf16>
}
llvm.func @kernel(%matrix: !llvm.ptr<1>, %box: !llvm.ptr<3>) {
  nvvm.cp.async.shared.global %box, %matrix, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  llvm.return
}

// -----

func.func @matmul(%A: tensor<64x64xf16>, %B: tensor<64x64xf16>, %C: tensor<64x64xf16>) -> tensor<64x64xf16> {
  %c = linalg.matmul ins(%A, %B : tensor<64x64xf16>, tensor<64x64xf16>) outs(%C : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %c : tensor<64x64xf16>
}
llvm.func @short(%matrix: !llvm.ptr<1>, %box: !llvm.ptr<3>) {
  // expected-error@+1 {{tc.evict_copies_first: expected a copy of 16 bytes}}
  nvvm.cp.async.shared.global %box, %matrix, 8, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
  llvm.return
}
