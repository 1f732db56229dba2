// A product of f32 becomes three of tf32, the small terms first, and an addition to the accumulator in f32. A fragment
// is split once for all of its products in a block.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step multiply_as_3xtf32 --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @two_products_of_one_a(
// CHECK: [[half:%.+]] = arith.constant dense<4096> : vector<4x1xi32>
// CHECK: [[mask:%.+]] = arith.constant dense<-8192> : vector<4x1xi32>
// CHECK: [[bits:%.+]] = arith.bitcast %a : vector<4x1xf32> to vector<4x1xi32>
// CHECK: [[up:%.+]] = arith.addi [[bits]], [[half]]
// CHECK: [[cut:%.+]] = arith.andi [[up]], [[mask]]
// CHECK: [[a1:%.+]] = arith.bitcast [[cut]] : vector<4x1xi32> to vector<4x1xf32>
// CHECK: [[a2:%.+]] = arith.subf %a, [[a1]]
// CHECK: [[b1:%.+]] = arith.bitcast {{.*}} : vector<2x1xi32> to vector<2x1xf32>
// CHECK: [[b2:%.+]] = arith.subf %b, [[b1]]
// CHECK: [[zero:%.+]] = arith.constant dense<0.000000e+00> : vector<2x2xf32>
// CHECK: [[s0:%.+]] = nvgpu.mma.sync([[a2]], [[b1]], [[zero]]) {mmaShape = [16, 8, 8], tf32Enabled}
// CHECK: [[s1:%.+]] = nvgpu.mma.sync([[a1]], [[b2]], [[s0]]) {mmaShape = [16, 8, 8], tf32Enabled}
// CHECK: [[s2:%.+]] = nvgpu.mma.sync([[a1]], [[b1]], [[s1]]) {mmaShape = [16, 8, 8], tf32Enabled}
// CHECK: [[d0:%.+]] = arith.addf %c, [[s2]] : vector<2x2xf32>
// CHECK-NOT: subf %a,
// CHECK: [[e2:%.+]] = arith.subf %e,
// CHECK: [[t0:%.+]] = nvgpu.mma.sync([[a2]],
// CHECK: [[t1:%.+]] = nvgpu.mma.sync([[a1]], [[e2]], [[t0]])
// CHECK: [[t2:%.+]] = nvgpu.mma.sync([[a1]], {{.*}}, [[t1]])
// CHECK: [[d1:%.+]] = arith.addf [[d0]], [[t2]]
// CHECK: return [[d1]]
// CHECK: // -----
!a = vector<4x1xf32>
!b = vector<2x1xf32>
!c = vector<2x2xf32>
func.func @two_products_of_one_a(%a: !a, %b: !b, %e: !b, %c: !c) -> !c {
  %0 = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (!a, !b, !c) -> !c
  %1 = nvgpu.mma.sync(%a, %e, %0) {mmaShape = [16, 8, 8]} : (!a, !b, !c) -> !c
  return %1 : !c
}

// -----

// A fragment that is used in a loop, and outside of it, is split in both.
// CHECK-LABEL: func.func @blocks(
// CHECK: arith.subf %a,
// CHECK-COUNT-3: nvgpu.mma.sync
// CHECK: scf.for
// CHECK: arith.subf %a,
// CHECK-COUNT-3: nvgpu.mma.sync
// CHECK: arith.addf
// CHECK-NEXT: scf.yield
// CHECK: // -----
!a = vector<4x1xf32>
!b = vector<2x1xf32>
!c = vector<2x2xf32>
func.func @blocks(%a: !a, %b: !b, %c: !c, %from: index, %to: index, %step: index) -> !c {
  %0 = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (!a, !b, !c) -> !c
  %1 = scf.for %k = %from to %to step %step iter_args(%sum = %0) -> (!c) {
    %2 = nvgpu.mma.sync(%a, %b, %sum) {mmaShape = [16, 8, 8]} : (!a, !b, !c) -> !c
    scf.yield %2 : !c
  }
  return %1 : !c
}

// -----

// Products that may lose bits, and those of other types, stay.
// CHECK-LABEL: func.func @others(
// CHECK-NEXT: nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8], tf32Enabled}
// CHECK-NEXT: nvgpu.mma.sync(%f, %g, %{{.*}}) {mmaShape = [16, 8, 16]}
// CHECK-NEXT: return
!a = vector<4x1xf32>
!b = vector<2x1xf32>
!c = vector<2x2xf32>
func.func @others(%a: !a, %b: !b, %c: !c, %f: vector<4x2xf16>, %g: vector<2x2xf16>) -> !c {
  %0 = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8], tf32Enabled} : (!a, !b, !c) -> !c
  %1 = nvgpu.mma.sync(%f, %g, %0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, !c) -> !c
  return %1 : !c
}
