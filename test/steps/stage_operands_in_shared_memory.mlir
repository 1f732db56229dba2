// A k step copies the parts of A and B that there are into whole tiles of zeros, and multiplies whole tiles.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step stage_operands_in_shared_memory --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK: #[[depth:.+]] = affine_map<(d0) -> (-d0 + 24, 16)>
// CHECK-LABEL: func.func @ragged(
// CHECK-NOT: {{tensor.pad|scf.if}}
// CHECK: [[ROWS:%.+]] = affine.min
// CHECK: [[A:%.+]] = tensor.extract_slice %A{{.*}} {{\[}}[[ROWS]], 24]
// CHECK: scf.for [[K:%.+]] = %c0 to %c32 step %c16 iter_args([[C:%.+]] =
// CHECK-NOT: affine.max
// CHECK: [[DEPTH:%.+]] = affine.min #[[depth]]([[K]])
// CHECK: [[a:%.+]] = tensor.extract_slice [[A]][0, [[K]]] {{\[}}[[ROWS]], [[DEPTH]]]
// CHECK: [[SHARED_A:%.+]] = memref.alloc() {operand_a} : memref<64x16xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[SHARED_A]] :
// CHECK: [[INSIDE_A:%.+]] = memref.subview [[SHARED_A]][0, 0] {{\[}}[[ROWS]], [[DEPTH]]]
// CHECK: [[FROM_A:%.+]] = bufferization.to_buffer [[a]] read_only
// CHECK: linalg.copy {operand_a} ins([[FROM_A]] : {{.*}}) outs([[INSIDE_A]] :
// CHECK: [[TILE_A:%.+]] = bufferization.to_tensor [[SHARED_A]]
// CHECK: [[b:%.+]] = tensor.extract_slice %B{{\[}}[[K]], 0] {{\[}}[[DEPTH]], 20]
// CHECK: [[SHARED_B:%.+]] = memref.alloc() {operand_b} : memref<16x32xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[SHARED_B]] :
// CHECK: [[INSIDE_B:%.+]] = memref.subview [[SHARED_B]][0, 0] {{\[}}[[DEPTH]], 20]
// CHECK: linalg.copy {operand_b} {{.*}} outs([[INSIDE_B]] :
// CHECK: [[TILE_B:%.+]] = bufferization.to_tensor [[SHARED_B]]
// CHECK: linalg.matmul ins([[TILE_A]], [[TILE_B]] : tensor<64x16xf16>, tensor<16x32xf16>) outs([[C]]
// CHECK-SAME: : tensor<64x32xf32>)
// CHECK-NOT: {{tensor.pad|scf.if}}
// CHECK: // -----
#tile = affine_map<(d0) -> (d0 * 64)>
#rows = affine_map<(d0) -> (d0 * -64 + 100, 64)>
#missing = affine_map<(d0) -> (-d0 + 64)>
func.func @ragged(%A: tensor<100x24xf16>, %B: tensor<24x20xf16>, %C: tensor<128x32xf32>) -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %out = scf.forall (%i) in (2) shared_outs(%whole = %C) -> (tensor<128x32xf32>) {
    %row = affine.apply #tile(%i)
    %rows = affine.min #rows(%i)
    %a = tensor.extract_slice %A[%row, 0] [%rows, 24] [1, 1] : tensor<100x24xf16> to tensor<?x24xf16>
    %missing = affine.apply #missing(%rows)
    %a_padded = tensor.pad %a nofold low[0, 0] high[%missing, 8] {
    ^bb0(%y: index, %x: index):
      tensor.yield %zero : f16
    } : tensor<?x24xf16> to tensor<64x32xf16>
    %b_padded = tensor.pad %B nofold low[0, 0] high[8, 12] {
    ^bb0(%y: index, %x: index):
      tensor.yield %zero : f16
    } : tensor<24x20xf16> to tensor<32x32xf16>
    %c = tensor.extract_slice %whole[%row, 0] [64, 32] [1, 1] : tensor<128x32xf32> to tensor<64x32xf32>
    %d = scf.for %k = %c0 to %c32 step %c16 iter_args(%sum = %c) -> (tensor<64x32xf32>) {
      %a_tile = tensor.extract_slice %a_padded[0, %k] [64, 16] [1, 1] : tensor<64x32xf16> to tensor<64x16xf16>
      %b_tile = tensor.extract_slice %b_padded[%k, 0] [16, 32] [1, 1] : tensor<32x32xf16> to tensor<16x32xf16>
      %next = linalg.matmul ins(%a_tile, %b_tile : tensor<64x16xf16>, tensor<16x32xf16>)
          outs(%sum : tensor<64x32xf32>) -> tensor<64x32xf32>
      scf.yield %next : tensor<64x32xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %whole[%row, 0] [64, 32] [1, 1] : tensor<64x32xf32> into tensor<128x32xf32>
    }
  } {mapping = [#gpu.block<y>]}
  return %out : tensor<128x32xf32>
}

// -----

// Where steps divide the reduction, all are as deep.
// CHECK-LABEL: func.func @whole_steps(
// CHECK: scf.for
// CHECK-NOT: affine.min
// CHECK: [[A:%.+]] = memref.alloc() {operand_a}
// CHECK: memref.subview [[A]][0, 0] [60, 16]
// CHECK: memref.alloc() {operand_b}
// CHECK-NOT: linalg.fill
// CHECK: linalg.copy {operand_b}
// CHECK: // -----
func.func @whole_steps(%a: tensor<60x32xf16>, %b: tensor<32x32xf16>, %c: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %a_padded = tensor.pad %a nofold low[0, 0] high[4, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f16
  } : tensor<60x32xf16> to tensor<64x32xf16>
  %b_padded = tensor.pad %b nofold low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f16
  } : tensor<32x32xf16> to tensor<32x32xf16>
  %d = scf.for %k = %c0 to %c32 step %c16 iter_args(%sum = %c) -> (tensor<64x32xf32>) {
    %a_tile = tensor.extract_slice %a_padded[0, %k] [64, 16] [1, 1] : tensor<64x32xf16> to tensor<64x16xf16>
    %b_tile = tensor.extract_slice %b_padded[%k, 0] [16, 32] [1, 1] : tensor<32x32xf16> to tensor<16x32xf16>
    %next = linalg.matmul ins(%a_tile, %b_tile : tensor<64x16xf16>, tensor<16x32xf16>)
        outs(%sum : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  }
  return %d : tensor<64x32xf32>
}

// -----

// A reduction of one step has no loop. Column-major tiles keep their layout, and whole ones are copied without a fill.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT: {{scf.for |tensor.pad|linalg.fill|affine.min|\?}}
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<16x64xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_a} {{.*}} outs([[A]] :
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<32x16xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_b} {{.*}} outs([[B]] :
// CHECK: linalg.matmul indexing_maps = {{.*}} ins({{.*}} : tensor<16x64xf16>, tensor<32x16xf16>) outs(%c :
// CHECK-NOT: {{linalg.fill|tensor.pad}}
func.func @one_step(%a: tensor<16x64xf16>, %b: tensor<32x16xf16>, %c: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f16
  %a_padded = tensor.pad %a nofold low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f16
  } : tensor<16x64xf16> to tensor<16x64xf16>
  %b_padded = tensor.pad %b nofold low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f16
  } : tensor<32x16xf16> to tensor<32x16xf16>
  %d = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k)
      -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a_padded, %b_padded : tensor<16x64xf16>, tensor<32x16xf16>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}

// -----

// Tiles that are staged already have no paddings.
func.func @staged(%a: memref<16x64xf16>, %b: memref<64x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %a_tile = bufferization.to_tensor %a restrict : memref<16x64xf16> to tensor<16x64xf16>
  %b_tile = bufferization.to_tensor %b restrict : memref<64x16xf16> to tensor<64x16xf16>
  // expected-error@unknown {{incompatible payload operation name expected tensor.pad vs bufferization.to_tensor}}
  %d = linalg.matmul ins(%a_tile, %b_tile : tensor<16x64xf16>, tensor<64x16xf16>) outs(%c : tensor<16x16xf32>)
    -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}
