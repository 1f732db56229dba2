// C is cut into tiles of block_m x block_n, one for each block: a parallel loop with rows on y and columns on x, whole
// rows of A and columns of B in each tile.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wgmma --step tile_to_blocks --set block_m=64 --split-input-file
// RUN: %{opt} --set block_n=32 | FileCheck %s
// RUN: %{opt} --set block_n=64 | FileCheck %s --check-prefix=WIDE

// CHECK-DAG: #[[rows:.+]] = affine_map<(d0) -> (d0 * 64)>
// CHECK-DAG: #[[columns:.+]] = affine_map<(d0) -> (d0 * 32)>
// CHECK: [[C:%.+]] = bufferization.to_tensor %{{.*}} restrict writable
// CHECK-NOT: linalg
// CHECK: scf.forall ([[I:%.+]], [[J:%.+]]) in (2, 4) shared_outs([[c:%.+]] = [[C]])
// CHECK: [[i:%.+]] = affine.apply #[[rows]]([[I]])
// CHECK: [[j:%.+]] = affine.apply #[[columns]]([[J]])
// CHECK: tensor.extract_slice %A{{\[}}[[i]], 0] [64, 8] [1, 1]
// CHECK: tensor.extract_slice %B[0, [[j]]] [8, 32] [1, 1]
// CHECK: tensor.extract_slice [[c]]{{\[}}[[i]], [[j]]] [64, 32] [1, 1]
// CHECK: linalg.matmul ins({{.*}} : tensor<64x8xf16>, tensor<8x32xf16>) outs(%{{.*}} : tensor<64x32xf32>)
// CHECK: tensor.parallel_insert_slice %{{.*}} into [[c]]{{\[}}[[i]], [[j]]] [64, 32]
// CHECK: mapping = [#gpu.block<y>, #gpu.block<x>]
// CHECK-NOT: linalg
// CHECK: return

// WIDE: scf.forall ({{.*}}) in (2, 2)
// WIDE: linalg.matmul ins({{.*}} : tensor<64x8xf16>, tensor<8x64xf16>) outs(%{{.*}} : tensor<64x64xf32>)
func.func @accumulate(%A: tensor<128x8xf16>, %B: tensor<8x128xf16>, %C: memref<128x128xf32>) {
  %c = bufferization.to_tensor %C restrict writable : memref<128x128xf32> to tensor<128x128xf32>
  %d = linalg.matmul ins(%A, %B : tensor<128x8xf16>, tensor<8x128xf16>)
      outs(%c : tensor<128x128xf32>) -> tensor<128x128xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<128x128xf32>, memref<128x128xf32>) -> ()
  return
}

// -----

// The zeros of C = AB are filled tile by tile.
// CHECK-LABEL: func.func @from_zero(
// CHECK-NOT: linalg.fill
// CHECK: scf.forall
// CHECK: [[zeros:%.+]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<64x32xf32>)
// CHECK: linalg.matmul ins({{.*}}) outs([[zeros]] : tensor<64x32xf32>)
// CHECK-NOT: linalg
// CHECK: return
func.func @from_zero(%A: tensor<128x8xf16>, %B: tensor<8x128xf16>, %C: memref<128x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = bufferization.to_tensor %C restrict writable : memref<128x128xf32> to tensor<128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = linalg.matmul ins(%A, %B : tensor<128x8xf16>, tensor<8x128xf16>)
      outs(%zeros : tensor<128x128xf32>) -> tensor<128x128xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<128x128xf32>, memref<128x128xf32>) -> ()
  return
}

// -----

// Tiles at the edges are smaller. The sums of a rounding are computed where it rounds.
// CHECK-DAG: #[[rows:.+]] = affine_map<(d0) -> (d0 * -64 + 100, 64)>
// CHECK-DAG: #[[columns:.+]] = affine_map<(d0) -> (d0 * -32 + 40, 32)>
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: linalg
// CHECK: scf.forall ([[I:%.+]], [[J:%.+]]) in (2, 2) shared_outs
// CHECK: [[ROWS:%.+]] = affine.min #[[rows]]([[I]])
// CHECK: [[COLUMNS:%.+]] = affine.min #[[columns]]([[J]])
// CHECK: tensor.extract_slice %A{{.*}} {{\[}}[[ROWS]], 8]
// CHECK: tensor.extract_slice %B{{.*}} [8, [[COLUMNS]]]
// CHECK-DAG: [[ZEROS:%.+]] = linalg.fill
// CHECK: [[SUMS:%.+]] = linalg.matmul ins({{.*}}) outs([[ZEROS]] : tensor<?x?xf32>)
// CHECK: linalg.generic {{.*}} ins([[SUMS]] : tensor<?x?xf32>) outs({{.*}} : tensor<?x?xf16>)
// CHECK: arith.truncf
// CHECK: scf.forall.in_parallel
// CHECK-NOT: linalg
// CHECK: return
#whole = affine_map<(i, j) -> (i, j)>
func.func @rounded(%A: tensor<100x8xf16>, %B: tensor<8x40xf16>, %C: memref<100x40xf16>) {
  %zero = arith.constant 0.0 : f32
  %c = bufferization.to_tensor %C restrict writable : memref<100x40xf16> to tensor<100x40xf16>
  %empty = tensor.empty() : tensor<100x40xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<100x40xf32>) -> tensor<100x40xf32>
  %sums = linalg.matmul ins(%A, %B : tensor<100x8xf16>, tensor<8x40xf16>)
      outs(%zeros : tensor<100x40xf32>) -> tensor<100x40xf32>
  %d = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%sums : tensor<100x40xf32>) outs(%c : tensor<100x40xf16>) {
  ^bb0(%sum: f32, %old: f16):
    %rounded = arith.truncf %sum : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<100x40xf16>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<100x40xf16>, memref<100x40xf16>) -> ()
  return
}

// -----

// Of a batch, a block computes a tile of one matmul: the batch is on z, and its dimension is dropped.
// CHECK-LABEL: func.func @batch(
// CHECK-NOT: linalg
// CHECK: scf.forall ([[B:%[a-z0-9_]+]], [[I:%[a-z0-9_]+]], [[J:%[a-z0-9_]+]]) in (5, 2, 4) shared_outs([[c:%.+]] = %{{.*}})
// CHECK-DAG: [[A_ROWS:%.+]] = tensor.extract_slice %A{{\[}}[[B]], [[i:%[a-z0-9_]+]], 0] [1, 64, 8] [1, 1, 1] : tensor<5x128x8xf16> to tensor<64x8xf16>
// CHECK-DAG: [[B_COLUMNS:%.+]] = tensor.extract_slice %B{{\[}}[[B]], 0, [[j:%[a-z0-9_]+]]] [1, 8, 32] [1, 1, 1] : tensor<5x8x128xf16> to tensor<8x32xf16>
// CHECK-DAG: [[C_TILE:%.+]] = tensor.extract_slice [[c]]{{\[}}[[B]], [[i]], [[j]]] [1, 64, 32] [1, 1, 1] : tensor<5x128x128xf32> to tensor<64x32xf32>
// CHECK: [[D:%.+]] = linalg.matmul ins([[A_ROWS]], [[B_COLUMNS]] : {{.*}}) outs([[C_TILE]] : tensor<64x32xf32>)
// CHECK: tensor.parallel_insert_slice [[D]] into [[c]]{{\[}}[[B]], [[i]], [[j]]] [1, 64, 32] [1, 1, 1] : tensor<64x32xf32> into
// CHECK: mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]
// CHECK-NOT: linalg
// CHECK: return
func.func @batch(%A: tensor<5x128x8xf16>, %B: tensor<5x8x128xf16>, %C: memref<5x128x128xf32>) {
  %c = bufferization.to_tensor %C restrict writable : memref<5x128x128xf32> to tensor<5x128x128xf32>
  %d = linalg.batch_matmul ins(%A, %B : tensor<5x128x8xf16>, tensor<5x8x128xf16>)
      outs(%c : tensor<5x128x128xf32>) -> tensor<5x128x128xf32>
  bufferization.materialize_in_destination %d in restrict writable %C
      : (tensor<5x128x128xf32>, memref<5x128x128xf32>) -> ()
  return
}

// -----

// B is one matrix for the batch, stored transposed; tiles at the edges are smaller; the fill and the rounding follow.
// CHECK-LABEL: func.func @broadcast(
// CHECK-NOT: linalg
// CHECK: scf.forall ([[B:%[a-z0-9_]+]], {{.*}}) in (3, 2, 2) shared_outs([[c:%.+]] = %{{.*}})
// CHECK-DAG: tensor.extract_slice %A{{\[}}[[B]], %{{.*}}, 0] [1, [[ROWS:%[a-z0-9_]+]], 8] [1, 1, 1] : tensor<3x100x8xf16> to tensor<?x8xf16>
// CHECK-DAG: tensor.extract_slice %B[%{{.*}}, 0] [[[COLUMNS:%[a-z0-9_]+]], 8] [1, 1] : tensor<40x8xf16> to tensor<?x8xf16>
// CHECK-DAG: [[ZEROS:%.+]] = linalg.fill ins({{.*}}) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK: [[SUMS:%.+]] = linalg.matmul indexing_maps = {{.*}} outs([[ZEROS]] : tensor<?x?xf32>)
// CHECK: [[ROUNDED:%.+]] = linalg.generic {{.*}} ins([[SUMS]] : tensor<?x?xf32>) outs({{.*}} : tensor<?x?xf16>)
// CHECK: tensor.parallel_insert_slice [[ROUNDED]] into [[c]]{{\[}}[[B]], {{.*}}] [1, [[ROWS]], [[COLUMNS]]]
// CHECK-NOT: linalg
// CHECK: return
#whole = affine_map<(b, i, j) -> (b, i, j)>
func.func @broadcast(%A: tensor<3x100x8xf16>, %B: tensor<40x8xf16>, %C: memref<3x100x40xf16>) {
  %zero = arith.constant 0.0 : f32
  %c = bufferization.to_tensor %C restrict writable : memref<3x100x40xf16> to tensor<3x100x40xf16>
  %empty = tensor.empty() : tensor<3x100x40xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x100x40xf32>) -> tensor<3x100x40xf32>
  %sums = linalg.contract indexing_maps = [
      affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%A, %B : tensor<3x100x8xf16>, tensor<40x8xf16>) outs(%zeros : tensor<3x100x40xf32>) -> tensor<3x100x40xf32>
  %d = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums : tensor<3x100x40xf32>) outs(%c : tensor<3x100x40xf16>) {
  ^bb0(%sum: f32, %old: f16):
    %rounded = arith.truncf %sum : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<3x100x40xf16>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<3x100x40xf16>, memref<3x100x40xf16>) -> ()
  return
}

// -----

// Both products of a pair are computed in the tile of the op that reads them.
// CHECK-LABEL: func.func @pair(
// CHECK-NOT: linalg
// CHECK: scf.forall ({{.*}}) in (2, 4) shared_outs
// CHECK: [[ROWS:%.+]] = tensor.extract_slice %A
// CHECK: [[P:%.+]] = linalg.matmul ins([[ROWS]], %{{.*}} : tensor<64x8xf16>, tensor<8x32xf16>)
// CHECK: [[Q:%.+]] = linalg.matmul ins([[ROWS]], %{{.*}} : tensor<64x8xf16>, tensor<8x32xf16>)
// CHECK: linalg.generic {{.*}} ins([[P]], [[Q]] : tensor<64x32xf32>, tensor<64x32xf32>)
// CHECK: scf.forall.in_parallel
// CHECK-NOT: linalg
// CHECK: return
#whole = affine_map<(i, j) -> (i, j)>
func.func @pair(%A: tensor<128x8xf16>, %B: tensor<8x128xf16>, %G: tensor<8x128xf16>, %C: memref<128x128xf16>) {
  %zero = arith.constant 0.0 : f32
  %c = bufferization.to_tensor %C restrict writable : memref<128x128xf16> to tensor<128x128xf16>
  %empty = tensor.empty() : tensor<128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %p = linalg.matmul ins(%A, %B : tensor<128x8xf16>, tensor<8x128xf16>)
      outs(%zeros : tensor<128x128xf32>) -> tensor<128x128xf32>
  %q = linalg.matmul ins(%A, %G : tensor<128x8xf16>, tensor<8x128xf16>)
      outs(%zeros : tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<128x128xf32>, tensor<128x128xf32>) outs(%c : tensor<128x128xf16>) {
  ^bb0(%left: f32, %right: f32, %old: f16):
    %product = arith.mulf %left, %right : f32
    %rounded = arith.truncf %product : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<128x128xf16>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<128x128xf16>, memref<128x128xf16>) -> ()
  return
}

// -----

// C has two strides between its matrices: the batch is one loop, and divided where C is stored.
// CHECK-LABEL: func.func @divided(
// CHECK-NOT: linalg
// CHECK: [[D:%.+]] = scf.forall ({{.*}}) in (6, 2, 4) shared_outs
// CHECK: linalg.matmul ins({{.*}} : tensor<64x8xf16>, tensor<8x32xf16>) outs({{.*}} : tensor<64x32xf32>)
// CHECK-NOT: linalg
// CHECK: [[DIVIDED:%.+]] = tensor.reshape [[D]]
// CHECK: bufferization.materialize_in_destination [[DIVIDED]]
func.func @divided(%A: tensor<6x128x8xf16>, %B: tensor<6x8x128xf16>,
    %C: memref<2x3x128x128xf32, strided<[49152, 128, 384, 1]>>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x128x128xf32>) -> tensor<6x128x128xf32>
  %d = linalg.batch_matmul ins(%A, %B : tensor<6x128x8xf16>, tensor<6x8x128xf16>)
      outs(%zeros : tensor<6x128x128xf32>) -> tensor<6x128x128xf32>
  %extents = arith.constant dense<[2, 3, 128, 128]> : tensor<4xi64>
  %divided = tensor.reshape %d(%extents) : (tensor<6x128x128xf32>, tensor<4xi64>) -> tensor<2x3x128x128xf32>
  bufferization.materialize_in_destination %divided in restrict writable %C
    : (tensor<2x3x128x128xf32>, memref<2x3x128x128xf32, strided<[49152, 128, 384, 1]>>) -> ()
  return
}
