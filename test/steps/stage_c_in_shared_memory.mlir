// The sums of a block have a whole tile in shared memory, whose part inside of C is what starts from C and is written
// to it. A and B are padded to whole tiles.
//
// DEFINE: %{sizes} = --set block_m=64 --set block_n=32 --set block_k=16
// RUN: %stepladder-opt %s --pipeline wgmma --step stage_c_in_shared_memory %{sizes} --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @ragged(
// CHECK: scf.forall
// CHECK: [[ROWS:%.+]] = affine.min
// CHECK: [[a:%.+]] = tensor.extract_slice %A
// CHECK: [[C:%.+]] = tensor.extract_slice {{.*}} {{\[}}[[ROWS]], 20]
// CHECK: [[A:%.+]] = tensor.pad [[a]] nofold low[0, 0] high[{{%.+}}, 8]
// CHECK: tensor<?x24xf16> to tensor<64x32xf16>
// CHECK: [[B:%.+]] = tensor.pad %B nofold low[0, 0] high[8, 12]
// CHECK: tensor<24x20xf16> to tensor<32x32xf16>
// CHECK: [[SUMS:%.+]] = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
// CHECK: linalg.fill {{.*}} outs([[SUMS]] :
// CHECK: [[INSIDE:%.+]] = memref.subview [[SUMS]][0, 0] {{\[}}[[ROWS]], 20]
// CHECK: [[FROM:%.+]] = bufferization.to_buffer [[C]] read_only
// CHECK: linalg.copy {operand_c} ins([[FROM]] : {{.*}}) outs([[INSIDE]] :
// CHECK: [[START:%.+]] = bufferization.to_tensor [[SUMS]] restrict writable
// CHECK: [[D:%.+]] = linalg.matmul ins([[A]], [[B]] : {{.*}}) outs([[START]] : tensor<64x32xf32>)
// CHECK: [[d:%.+]] = tensor.extract_slice [[D]][0, 0] {{\[}}[[ROWS]], 20]
// CHECK: linalg.copy {operand_c} ins([[d]] : tensor<?x20xf32>) outs([[C]] : tensor<?x20xf32>)
// CHECK-NOT: {{linalg|memref.alloc}}
// CHECK: // -----
#tile = affine_map<(d0) -> (d0 * 64)>
#rows = affine_map<(d0) -> (d0 * -64 + 100, 64)>
func.func @ragged(%A: tensor<100x24xf16>, %B: tensor<24x20xf16>, %C: tensor<100x20xf32>) -> tensor<100x20xf32> {
  %d = scf.forall (%i) in (2) shared_outs(%out = %C) -> (tensor<100x20xf32>) {
    %row = affine.apply #tile(%i)
    %rows = affine.min #rows(%i)
    %a = tensor.extract_slice %A[%row, 0] [%rows, 24] [1, 1] : tensor<100x24xf16> to tensor<?x24xf16>
    %c = tensor.extract_slice %out[%row, 0] [%rows, 20] [1, 1] : tensor<100x20xf32> to tensor<?x20xf32>
    %sums = linalg.matmul ins(%a, %B : tensor<?x24xf16>, tensor<24x20xf16>)
        outs(%c : tensor<?x20xf32>) -> tensor<?x20xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sums into %out[%row, 0] [%rows, 20] [1, 1] : tensor<?x20xf32>
          into tensor<100x20xf32>
    }
  } {mapping = [#gpu.block<y>]}
  return %d : tensor<100x20xf32>
}

// -----

// C = AB reads nothing of C: the zeros of its part of the tile become those of the tile.
// CHECK-LABEL: func.func @from_zero(
// CHECK: [[SUMS:%.+]] = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT: linalg.fill {{.*}} outs([[SUMS]] :
// CHECK-NOT: linalg.copy
// CHECK: linalg.matmul
// CHECK: linalg.copy {operand_c} ins({{.*}} : tensor<60x20xf32>) outs({{.*}} : tensor<60x20xf32>)
// CHECK-NOT: linalg.
// CHECK: // -----
func.func @from_zero(%A: tensor<60x16xf16>, %B: tensor<16x20xf16>, %C: tensor<60x20xf32>) -> tensor<60x20xf32> {
  %zero = arith.constant 0.0 : f32
  %d = scf.forall (%i) in (1) shared_outs(%out = %C) -> (tensor<60x20xf32>) {
    %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<60x20xf32>) -> tensor<60x20xf32>
    %sums = linalg.matmul ins(%A, %B : tensor<60x16xf16>, tensor<16x20xf16>)
        outs(%zeros : tensor<60x20xf32>) -> tensor<60x20xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sums into %out[0, 0] [60, 20] [1, 1] : tensor<60x20xf32> into tensor<60x20xf32>
    }
  } {mapping = [#gpu.block<y>]}
  return %d : tensor<60x20xf32>
}

// -----

// A rounding reads the sums and writes C: there is no copy.
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: linalg.copy
// CHECK: memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT: linalg.fill
// CHECK: [[D:%.+]] = linalg.matmul
// CHECK: [[INSIDE:%.+]] = tensor.extract_slice [[D]][0, 0]
// CHECK: linalg.generic {{.*}} ins([[INSIDE]] : tensor<60x20xf32>) outs({{.*}} : tensor<60x20xf16>) attrs = {operand_c}
// CHECK-NOT: linalg.copy
// CHECK: // -----
#same = affine_map<(i, j) -> (i, j)>
func.func @rounded(%A: tensor<60x16xf16>, %B: tensor<16x20xf16>, %C: tensor<60x20xf16>) -> tensor<60x20xf16> {
  %zero = arith.constant 0.0 : f32
  %d = scf.forall (%i) in (1) shared_outs(%out = %C) -> (tensor<60x20xf16>) {
    %empty = tensor.empty() : tensor<60x20xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<60x20xf32>) -> tensor<60x20xf32>
    %sums = linalg.matmul ins(%A, %B : tensor<60x16xf16>, tensor<16x20xf16>)
        outs(%zeros : tensor<60x20xf32>) -> tensor<60x20xf32>
    %rounded = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%sums : tensor<60x20xf32>) outs(%out : tensor<60x20xf16>) {
    ^bb0(%sum: f32, %old: f16):
      %half = arith.truncf %sum : f32 to f16
      linalg.yield %half : f16
    } -> tensor<60x20xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %rounded into %out[0, 0] [60, 20] [1, 1] : tensor<60x20xf16> into tensor<60x20xf16>
    }
  } {mapping = [#gpu.block<y>]}
  return %d : tensor<60x20xf16>
}

// -----

// Where tiles divide C there is nothing to fill and nothing to cut.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT: {{linalg.fill|affine.min|\?}}
// CHECK: tensor.pad %A nofold low[0, 0] high[0, 0]
// CHECK: [[SUMS:%.+]] = memref.alloc() {operand_c} : memref<64x32xf32, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_c} ins({{.*}}) outs([[SUMS]] :
// CHECK: linalg.matmul
// CHECK: linalg.copy {operand_c} ins({{.*}} : tensor<64x32xf32>) outs({{.*}} : tensor<64x32xf32>)
// CHECK: // -----
func.func @whole(%A: tensor<64x16xf16>, %B: tensor<16x32xf16>, %C: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %d = scf.forall (%i) in (1) shared_outs(%out = %C) -> (tensor<64x32xf32>) {
    %sums = linalg.matmul ins(%A, %B : tensor<64x16xf16>, tensor<16x32xf16>)
        outs(%out : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sums into %out[0, 0] [64, 32] [1, 1] : tensor<64x32xf32> into tensor<64x32xf32>
    }
  } {mapping = [#gpu.block<y>]}
  return %d : tensor<64x32xf32>
}

// -----

// CHECK-LABEL: func.func @whole_from_zero(
// CHECK: [[SUMS:%.+]] = memref.alloc() {operand_c}
// CHECK-NEXT: linalg.fill {{.*}} outs([[SUMS]] :
// CHECK-NOT: linalg.copy
// CHECK: linalg.matmul
// CHECK: linalg.copy {operand_c}
func.func @whole_from_zero(%A: tensor<64x16xf16>, %B: tensor<16x32xf16>, %C: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %d = scf.forall (%i) in (1) shared_outs(%out = %C) -> (tensor<64x32xf32>) {
    %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<64x32xf32>) -> tensor<64x32xf32>
    %sums = linalg.matmul ins(%A, %B : tensor<64x16xf16>, tensor<16x32xf16>)
        outs(%zeros : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sums into %out[0, 0] [64, 32] [1, 1] : tensor<64x32xf32> into tensor<64x32xf32>
    }
  } {mapping = [#gpu.block<y>]}
  return %d : tensor<64x32xf32>
}

// -----

// A matmul that is not tiled.
// expected-error@unknown {{expected parameter to be greater than or equal to 1, got 0}}
func.func @whole(%a: tensor<64x16xf16>, %b: tensor<16x32xf16>, %c: memref<64x32xf32>) -> tensor<64x32xf32> {
  %start = bufferization.to_tensor %c restrict : memref<64x32xf32> to tensor<64x32xf32>
  %d = linalg.matmul ins(%a, %b : tensor<64x16xf16>, tensor<16x32xf16>) outs(%start : tensor<64x32xf32>)
    -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}
