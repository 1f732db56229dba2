// The parallel loop becomes the grid, columns on x and rows on y, and the shared tile stands in front of the k loop.
//
// RUN: %stepladder-opt %s --pipeline wmma --step map_to_blocks --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @matmul(
// CHECK-NOT: scf.forall
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c3, %{{.*}} = %c2, %{{.*}} = %c1)
// CHECK: [[x:%.+]] = gpu.block_id x
// CHECK: [[y:%.+]] = gpu.block_id y
// CHECK: [[i:%.+]] = affine.apply #{{.*}}[[y]]]
// CHECK: [[j:%.+]] = affine.apply #{{.*}}[[x]]]
// CHECK: memref.subview %C{{\[}}[[i]], [[j]]] [16, 16] [1, 1]
// CHECK: [[shared:%.+]] = memref.alloc() {operand_a}
// CHECK: scf.for
// CHECK: memref.subview %A{{\[}}[[i]], %{{.*}}] [16, 16] [1, 1]
// CHECK: linalg.copy ins({{.*}}) outs([[shared]] :
// CHECK-NOT: {{memref.alloc|scf.forall}}
// CHECK: // -----
#tile = affine_map<(d0) -> (d0 * 16)>
func.func @matmul(%A: memref<32x64xf16>, %C: memref<32x48xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.forall (%i, %j) in (2, 3) {
    %row = affine.apply #tile(%i)
    %column = affine.apply #tile(%j)
    %c = memref.subview %C[%row, %column] [16, 16] [1, 1] : memref<32x48xf16>
        to memref<16x16xf16, strided<[48, 1], offset: ?>>
    scf.for %k = %c0 to %c64 step %c32 {
      %shared = memref.alloc() {operand_a} : memref<16x16xf16, #gpu.address_space<workgroup>>
      %a = memref.subview %A[%row, %k] [16, 16] [1, 1] : memref<32x64xf16>
          to memref<16x16xf16, strided<[64, 1], offset: ?>>
      linalg.copy ins(%a : memref<16x16xf16, strided<[64, 1], offset: ?>>)
          outs(%shared : memref<16x16xf16, #gpu.address_space<workgroup>>)
      linalg.copy ins(%shared : memref<16x16xf16, #gpu.address_space<workgroup>>)
          outs(%c : memref<16x16xf16, strided<[48, 1], offset: ?>>)
    }
  } {mapping = [#gpu.block<y>, #gpu.block<x>]}
  return
}

// -----

// expected-error@unknown {{expected to contain 1 payloads but it contains 0 payloads}}
func.func @no_loop() {
  return
}
