// The reduction is split into steps of block_k, with the tile of C carried from step to step.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline wmma
// RUN: %{opt} --through tile_to_blocks | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through tile_k | FileCheck %s
// RUN: %{opt} --through tile_k --set block_k=64 | FileCheck %s --check-prefix=DEEP

// BEFORE-NOT: scf.for{{ }}
// BEFORE: linalg.matmul ins({{.*}} : tensor<128x128xf16>, tensor<128x128xf16>)
// BEFORE-NOT: scf.for{{ }}

// CHECK-DAG: [[step:%.+]] = arith.constant 32 : index
// CHECK-DAG: [[end:%.+]] = arith.constant 128 : index
// CHECK-DAG: [[zero:%.+]] = arith.constant 0 : index
// CHECK: scf.forall
// CHECK: [[tile:%.+]] = tensor.extract_slice %{{.*}} : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK: scf.for [[k:%.+]] = [[zero]] to [[end]] step [[step]] iter_args([[c:%.+]] = [[tile]]) -> (tensor<128x128xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0, [[k]]] [128, 32] [1, 1]
// CHECK: tensor.extract_slice %{{.*}}{{\[}}[[k]], 0] [32, 128] [1, 1]
// CHECK: [[d:%.+]] = linalg.matmul ins({{.*}} : tensor<128x32xf16>, tensor<32x128xf16>) outs([[c]] : tensor<128x128xf32>)
// CHECK: scf.yield [[d]]

// DEEP: scf.for %{{.*}} to %c128 step %c64 iter_args
// DEEP: linalg.matmul ins({{.*}} : tensor<128x64xf16>, tensor<64x128xf16>)

// Without whole_tiles: the last step is as deep as the others, since A and B were padded.
//
// RUN: %stepladder payload matmul --m 200 --n 300 --k 100 -o %t.mlir
// RUN: %stepladder-opt %t.mlir --pipeline wgmma --through tile_k | FileCheck %s --check-prefix=EDGES

// EDGES: [[A:%.+]] = tensor.pad {{.*}} nofold
// EDGES: tensor<?x100xf16> to tensor<128x128xf16>
// EDGES: [[B:%.+]] = tensor.pad {{.*}} nofold
// EDGES: tensor<100x?xf16> to tensor<128x256xf16>
// EDGES: scf.for [[K:%.+]] = %c0 to %c128 step %c64 iter_args
// EDGES: tensor.extract_slice [[A]][0, [[K]]] [128, 64] [1, 1]
// EDGES: tensor.extract_slice [[B]]{{\[}}[[K]], 0] [64, 256] [1, 1]
// EDGES: linalg.matmul ins({{.*}} : tensor<128x64xf16>, tensor<64x256xf16>)
