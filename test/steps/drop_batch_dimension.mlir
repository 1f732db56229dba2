// The product of a batch of one becomes a plain matmul of matrices, whatever the layouts, and a fill of its sums that of
// a matrix. Dimensions that are not 1 stay, whether their extents are known or not.
//
// RUN: %stepladder-opt %s --pipeline %inputs/steps/drop_batch.mlir --from drop --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @from_zero(
// CHECK: [[ZEROS:%.+]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x32xf32>)
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<?x8xf16>, tensor<8x32xf16>) outs([[ZEROS]] : tensor<?x32xf32>)
// CHECK: tensor.insert_slice {{.*}} : tensor<?x32xf32> into tensor<1x?x32xf32>
// CHECK: return
func.func @from_zero(%a: tensor<1x?x8xf16>, %b: tensor<1x8x32xf16>, %c: tensor<1x?x32xf32>) -> tensor<1x?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<1x?x32xf32>) -> tensor<1x?x32xf32>
  %d = linalg.batch_matmul ins(%a, %b : tensor<1x?x8xf16>, tensor<1x8x32xf16>)
      outs(%zeros : tensor<1x?x32xf32>) -> tensor<1x?x32xf32>
  return %d : tensor<1x?x32xf32>
}

// -----

// A is stored transposed; B is one matrix for all.
// CHECK-DAG: #[[a:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[b:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[c:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @transposed(
// CHECK: linalg.matmul indexing_maps = [#[[a]], #[[b]], #[[c]]] ins(%{{.*}}, %b : tensor<8x16xf16>, tensor<8x32xf16>)
func.func @transposed(%a: tensor<1x8x16xf16>, %b: tensor<8x32xf16>, %c: tensor<1x16x32xf32>) -> tensor<1x16x32xf32> {
  %d = linalg.batch_matmul indexing_maps = [
      affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%a, %b : tensor<1x8x16xf16>, tensor<8x32xf16>) outs(%c : tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  return %d : tensor<1x16x32xf32>
}

// -----

// A slice of a slice becomes one, and so do two insertions: tiles are those of matrices in the batch.
// CHECK-LABEL: func.func @slices(
// CHECK-DAG: [[A:%.+]] = tensor.extract_slice %A[%n, %row, 0] [1, 64, 8] {{.*}} to tensor<64x8xf16>
// CHECK-DAG: [[C:%.+]] = tensor.extract_slice %c[%n, %row, 0] [1, 64, 32] {{.*}} to tensor<64x32xf32>
// CHECK: [[D:%.+]] = linalg.matmul ins([[A]], %{{.*}}) outs([[C]] : tensor<64x32xf32>)
// CHECK-NEXT: [[ALL:%.+]] = tensor.insert_slice [[D]] into %c[%n, %row, 0] [1, 64, 32]
// CHECK-NEXT: return [[ALL]]
func.func @slices(%A: tensor<5x128x8xf16>, %b: tensor<1x8x32xf16>, %c: tensor<5x128x32xf32>, %n: index, %row: index)
    -> tensor<5x128x32xf32> {
  %rows = tensor.extract_slice %A[%n, %row, 0] [1, 64, 8] [1, 1, 1] : tensor<5x128x8xf16> to tensor<1x64x8xf16>
  %tile = tensor.extract_slice %c[%n, %row, 0] [1, 64, 32] [1, 1, 1] : tensor<5x128x32xf32> to tensor<1x64x32xf32>
  %sums = linalg.batch_matmul ins(%rows, %b : tensor<1x64x8xf16>, tensor<1x8x32xf16>)
      outs(%tile : tensor<1x64x32xf32>) -> tensor<1x64x32xf32>
  %d = tensor.insert_slice %sums into %c[%n, %row, 0] [1, 64, 32] [1, 1, 1]
      : tensor<1x64x32xf32> into tensor<5x128x32xf32>
  return %d : tensor<5x128x32xf32>
}
