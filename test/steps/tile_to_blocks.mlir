// C is cut into tiles of block_m x block_n, one for each block: a parallel loop with rows on y and columns on x, whole
// rows of A and columns of B in each tile. The zeros of C = AB are filled tile by tile.
//
// DEFINE: %{tile} = --pipeline wmma --through tile_to_blocks
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through normalize_payload | FileCheck %s --check-prefix=BEFORE
// RUN: %stepladder-opt %payloads/accumulate.mlir %{tile} | FileCheck %s
// RUN: %stepladder-opt %payloads/accumulate.mlir %{tile} --set block_m=64 --set block_n=256 | FileCheck %s --check-prefix=OTHER
// RUN: %stepladder-opt %payloads/product.mlir %{tile} | FileCheck %s --check-prefix=ZERO

// BEFORE-NOT: scf.forall
// BEFORE: linalg.matmul ins({{.*}} : tensor<256x128xf16>, tensor<128x256xf16>)

// CHECK: #[[map:.+]] = affine_map<(d0) -> (d0 * 128)>
// CHECK: [[C:%.+]] = bufferization.to_tensor %{{.*}} restrict writable
// CHECK: scf.forall ([[I:%.+]], [[J:%.+]]) in (2, 2) shared_outs([[c:%.+]] = [[C]])
// CHECK: [[i:%.+]] = affine.apply #[[map]]([[I]])
// CHECK: [[j:%.+]] = affine.apply #[[map]]([[J]])
// CHECK: tensor.extract_slice %{{.*}}{{\[}}[[i]], 0] [128, 128] [1, 1] : tensor<256x128xf16>
// CHECK: tensor.extract_slice %{{.*}}[0, [[j]]] [128, 128] [1, 1] : tensor<128x256xf16>
// CHECK: tensor.extract_slice [[c]]{{\[}}[[i]], [[j]]] [128, 128] [1, 1] : tensor<256x256xf32>
// CHECK: linalg.matmul ins({{.*}}) outs(%{{.*}} : tensor<128x128xf32>)
// CHECK: tensor.parallel_insert_slice %{{.*}} into [[c]]{{\[}}[[i]], [[j]]] [128, 128]
// CHECK: mapping = [#gpu.block<y>, #gpu.block<x>]
// CHECK-NOT: linalg.matmul

// OTHER: scf.forall ({{.*}}) in (4, 1)
// OTHER: linalg.matmul ins({{.*}} : tensor<64x128xf16>, tensor<128x256xf16>) outs(%{{.*}} : tensor<64x256xf32>)

// ZERO-NOT: linalg.fill
// ZERO: scf.forall
// ZERO: [[zeros:%.+]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<128x128xf32>)
// ZERO: linalg.matmul ins({{.*}}) outs([[zeros]] : tensor<128x128xf32>)
// ZERO-NOT: linalg.fill

// Without whole_tiles: the tiles at the edges are smaller. The sums of a rounding are computed where it rounds.
//
// RUN: %stepladder payload matmul --m 200 --n 300 --k 100 --c-type f16 --no-accumulate -o %t.mlir
// RUN: %stepladder-opt %t.mlir --pipeline wgmma --through tile_to_blocks | FileCheck %s --check-prefix=EDGES

// EDGES-DAG: #[[rows:.+]] = affine_map<(d0) -> (d0 * -128 + 200, 128)>
// EDGES-DAG: #[[columns:.+]] = affine_map<(d0) -> (d0 * -256 + 300, 256)>
// EDGES-NOT: {{linalg.fill|linalg.matmul}}
// EDGES: scf.forall ([[I:%.+]], [[J:%.+]]) in (2, 2) shared_outs
// EDGES: [[ROWS:%.+]] = affine.min #[[rows]]([[I]])
// EDGES: [[COLUMNS:%.+]] = affine.min #[[columns]]([[J]])
// EDGES: tensor.extract_slice %{{.*}} {{\[}}[[ROWS]], 100]
// EDGES: tensor.extract_slice %{{.*}} [100, [[COLUMNS]]]
// EDGES: [[ZEROS:%.+]] = linalg.fill
// EDGES: [[SUMS:%.+]] = linalg.matmul ins({{.*}}) outs([[ZEROS]] : tensor<?x?xf32>)
// EDGES: linalg.generic {{.*}} ins([[SUMS]] : tensor<?x?xf32>) outs({{.*}} : tensor<?x?xf16>)
// EDGES: arith.truncf
// EDGES: scf.forall.in_parallel
// EDGES-NOT: {{linalg.fill|linalg.matmul|linalg.generic}}
