// The reduction is split into steps of block_k, with the tile of C carried from step to step.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wmma --step tile_k --split-input-file
// RUN: %{opt} | FileCheck %s
// RUN: %{opt} --set block_k=64 | FileCheck %s --check-prefix=DEEP

// CHECK-LABEL: func.func @matmul(
// CHECK-DAG: [[step:%.+]] = arith.constant 32 : index
// CHECK-DAG: [[end:%.+]] = arith.constant 128 : index
// CHECK-DAG: [[zero:%.+]] = arith.constant 0 : index
// CHECK: scf.for [[k:%.+]] = [[zero]] to [[end]] step [[step]] iter_args([[c:%.+]] = %c) -> (tensor<16x16xf32>)
// CHECK-DAG: [[a:%.+]] = tensor.extract_slice %a[0, [[k]]] [16, 32] [1, 1]
// CHECK-DAG: [[b:%.+]] = tensor.extract_slice %b{{\[}}[[k]], 0] [32, 16] [1, 1]
// CHECK: [[d:%.+]] = linalg.matmul ins([[a]], [[b]] : {{.*}}) outs([[c]] : tensor<16x16xf32>)
// CHECK-NEXT: scf.yield [[d]]
// CHECK-NOT: linalg.matmul
// CHECK: // -----

// DEEP: scf.for %{{.*}} = %c0 to %c128 step %c64 iter_args
// DEEP: linalg.matmul ins({{.*}} : tensor<16x64xf16>, tensor<64x16xf16>)
func.func @matmul(%a: tensor<16x128xf16>, %b: tensor<128x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<16x128xf16>, tensor<128x16xf16>)
      outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}

// -----

// A reduction of one step has no loop.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT: scf.for
// CHECK: linalg.matmul ins(%a, %b :
// CHECK: // -----
func.func @one_step(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x16xf16>)
      outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}

// -----

// Where A and B are padded to whole steps, the last step is as deep as the others.
// CHECK-LABEL: func.func @padded(
// CHECK: [[A:%.+]] = tensor.pad %a nofold
// CHECK: scf.for [[k:%.+]] = %c0 to %c128 step %c32 iter_args
// CHECK: tensor.extract_slice [[A]][0, [[k]]] [16, 32] [1, 1]
// CHECK: linalg.matmul ins({{.*}} : tensor<16x32xf16>, tensor<32x16xf16>)
func.func @padded(%a: tensor<16x100xf16>, %b: tensor<128x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f16
  %a_padded = tensor.pad %a nofold low[0, 0] high[0, 28] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f16
  } : tensor<16x100xf16> to tensor<16x128xf16>
  %d = linalg.matmul ins(%a_padded, %b : tensor<16x128xf16>, tensor<128x16xf16>)
      outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}

// -----

// Two matmuls of one A have one loop.
// CHECK-LABEL: func.func @pair(
// CHECK: scf.for [[k:%.+]] = %{{.*}} iter_args([[p:%.+]] = %c, [[q:%.+]] = %e)
// CHECK: [[a:%.+]] = tensor.extract_slice %a[0, [[k]]] [16, 32] [1, 1]
// CHECK: linalg.matmul ins([[a]], %{{.*}}) outs([[p]] :
// CHECK: linalg.matmul ins([[a]], %{{.*}}) outs([[q]] :
// CHECK: scf.yield
// CHECK-NOT: scf.for
func.func @pair(%a: tensor<16x128xf16>, %b: tensor<128x16xf16>, %g: tensor<128x16xf16>, %c: tensor<16x16xf32>,
    %e: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %p = linalg.matmul ins(%a, %b : tensor<16x128xf16>, tensor<128x16xf16>)
      outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %q = linalg.matmul ins(%a, %g : tensor<16x128xf16>, tensor<128x16xf16>)
      outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %p, %q : tensor<16x16xf32>, tensor<16x16xf32>
}
