// The transpose of C is computed from B and A exchanged, and written through a transposed view; no matrix is copied.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --set swap_operands=true --set epilogue=registers --from swap_operands --through swap_operands
// RUN: %{opt} %s --split-input-file --verify-diagnostics | FileCheck %s

// Row-major operands are read transposed, k x m and n x k; the fill, the rounding and C have the extents exchanged.
// CHECK-DAG: #[[a:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[b:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[c:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @rounded(
// CHECK-SAME: [[A:%.+]]: memref<8x128xf16>, [[B:%.+]]: memref<128x256xf16>, [[C:%.+]]: memref<8x256xf16>)
// CHECK-DAG: [[first:%.+]] = bufferization.to_tensor [[B]]
// CHECK-DAG: [[second:%.+]] = bufferization.to_tensor [[A]]
// CHECK-DAG: [[view:%.+]] = memref.transpose [[C]] (d0, d1) -> (d1, d0) : memref<8x256xf16> to memref<256x8xf16, strided<[1, 256]>>
// CHECK: [[empty:%.+]] = tensor.empty() : tensor<256x8xf32>
// CHECK-NEXT: [[zeros:%.+]] = linalg.fill {{.*}} outs([[empty]] : tensor<256x8xf32>)
// CHECK-NEXT: [[product:%.+]] = linalg.matmul indexing_maps = [#[[a]], #[[b]], #[[c]]] ins([[first]], [[second]] : tensor<128x256xf16>, tensor<8x128xf16>) outs([[zeros]] : tensor<256x8xf32>)
// CHECK-NEXT: [[d:%.+]] = bufferization.to_tensor [[view]] restrict writable
// CHECK-NEXT: [[rounded:%.+]] = linalg.generic {{.*}} ins([[product]] : tensor<256x8xf32>) outs([[d]] : tensor<256x8xf16>)
// CHECK: arith.truncf
// CHECK: bufferization.materialize_in_destination [[rounded]] in restrict writable [[view]]
// CHECK-NEXT: return
#same = affine_map<(i, j) -> (i, j)>
func.func @rounded(%A: memref<8x128xf16>, %B: memref<128x256xf16>, %C: memref<8x256xf16>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x256xf16> to tensor<128x256xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x256xf32>) -> tensor<8x256xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x128xf16>, tensor<128x256xf16>)
                           outs(%start : tensor<8x256xf32>) -> tensor<8x256xf32>
  %d = bufferization.to_tensor %C restrict writable : memref<8x256xf16> to tensor<8x256xf16>
  %rounded = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<8x256xf32>) outs(%d : tensor<8x256xf16>) {
  ^bb0(%x: f32, %y: f16):
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  } -> tensor<8x256xf16>
  bufferization.materialize_in_destination %rounded in restrict writable %C : (tensor<8x256xf16>, memref<8x256xf16>) -> ()
  return
}

// -----

// C = AB + C of a column-major B: the accumulator starts from the transposed C, and B is read row-major.
// CHECK-DAG: #[[a:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[b:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @accumulated(
// CHECK: [[view:%.+]] = memref.transpose
// CHECK-NEXT: [[c:%.+]] = bufferization.to_tensor [[view]] restrict writable : memref<256x8xf32, strided<[1, 256]>> to tensor<256x8xf32>
// CHECK-NEXT: [[d:%.+]] = linalg.matmul indexing_maps = [#[[a]], #[[b]], #{{.+}}] ins({{.*}} : tensor<256x128xf16>, tensor<8x128xf16>) outs([[c]] : tensor<256x8xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[view]]
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @accumulated(%A: memref<8x128xf16>, %B: memref<256x128xf16>, %C: memref<8x256xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<256x128xf16> to tensor<256x128xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<8x256xf32> to tensor<8x256xf32>
  %product = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<8x128xf16>, tensor<256x128xf16>)
                           outs(%c : tensor<8x256xf32>) -> tensor<8x256xf32>
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<8x256xf32>, memref<8x256xf32>) -> ()
  return
}

// -----

// Two results of an elementwise op: its loops are exchanged, and each result has a transposed view. The bias of columns
// is read along rows, and the matrix in transposed order.
// CHECK-DAG: #[[same:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[bias:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[turned:.+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func.func @two_results(
// CHECK-SAME: [[C:%[^:]+]]: memref<8x256xf32>, [[R:%[^:]+]]: memref<8x256xf16>)
// CHECK-DAG: [[view:%.+]] = memref.transpose [[C]]
// CHECK-DAG: [[other:%.+]] = memref.transpose [[R]]
// CHECK: [[product:%.+]] = linalg.matmul {{.*}} -> tensor<256x8xf32>
// CHECK: [[results:%.+]]:2 = linalg.generic {indexing_maps = [#[[same]], #[[bias]], #[[turned]], #[[same]], #[[same]]]
// CHECK-SAME: ins([[product]], %{{.+}}, %{{.+}} : tensor<256x8xf32>, tensor<256xf32>, tensor<8x256xf32>)
// CHECK-SAME: outs(%{{.+}}, %{{.+}} : tensor<256x8xf32>, tensor<256x8xf16>)
// CHECK-DAG: materialize_in_destination [[results]]#0 in restrict writable [[view]]
// CHECK-DAG: materialize_in_destination [[results]]#1 in restrict writable [[other]]
#same = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @two_results(%A: memref<8x128xf16>, %B: memref<128x256xf16>, %D: tensor<256xf32>, %E: tensor<8x256xf32>,
                       %C: memref<8x256xf32>, %R: memref<8x256xf16>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x256xf16> to tensor<128x256xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x256xf32>) -> tensor<8x256xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x128xf16>, tensor<128x256xf16>)
                           outs(%start : tensor<8x256xf32>) -> tensor<8x256xf32>
  %c = bufferization.to_tensor %C restrict writable : memref<8x256xf32> to tensor<8x256xf32>
  %r = bufferization.to_tensor %R restrict writable : memref<8x256xf16> to tensor<8x256xf16>
  %both:2 = linalg.generic {indexing_maps = [#same, #columns, #same, #same, #same],
                            iterator_types = ["parallel", "parallel"]}
      ins(%product, %D, %E : tensor<8x256xf32>, tensor<256xf32>, tensor<8x256xf32>)
      outs(%c, %r : tensor<8x256xf32>, tensor<8x256xf16>) {
  ^bb0(%x: f32, %d: f32, %e: f32, %y: f32, %z: f16):
    %s = arith.addf %x, %d : f32
    %t = arith.mulf %s, %e : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %t, %u : f32, f16
  } -> (tensor<8x256xf32>, tensor<8x256xf16>)
  bufferization.materialize_in_destination %both#0 in restrict writable %C : (tensor<8x256xf32>, memref<8x256xf32>) -> ()
  bufferization.materialize_in_destination %both#1 in restrict writable %R : (tensor<8x256xf16>, memref<8x256xf16>) -> ()
  return
}

// -----

// A batch: the matrices are exchanged, the loop over the batch stays. A column-major A that all matmuls read becomes a
// row-major B that they do.
//
// CHECK-DAG: #[[a:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG: #[[b:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[c:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @batch(
// CHECK: [[view:%.+]] = memref.transpose %{{.+}} (d0, d1, d2) -> (d0, d2, d1) : memref<3x8x256xf32> to memref<3x256x8xf32, strided<[2048, 1, 256]>>
// CHECK-NEXT: [[start:%.+]] = bufferization.to_tensor [[view]] restrict writable
// CHECK-NEXT: [[d:%.+]] = linalg.contract indexing_maps = [#[[a]], #[[b]], #[[c]]] ins(%{{.+}}, %{{.+}} : tensor<3x128x256xf16>, tensor<128x8xf16>) outs([[start]] : tensor<3x256x8xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[view]]
#a = affine_map<(b, m, n, k) -> (k, m)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @batch(%A: memref<128x8xf16>, %B: memref<3x128x256xf16>, %C: memref<3x8x256xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<128x8xf16> to tensor<128x8xf16>
  %b = bufferization.to_tensor %B restrict : memref<3x128x256xf16> to tensor<3x128x256xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<3x8x256xf32> to tensor<3x8x256xf32>
  %product = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<128x8xf16>, tensor<3x128x256xf16>)
                             outs(%c : tensor<3x8x256xf32>) -> tensor<3x8x256xf32>
  bufferization.materialize_in_destination %product in restrict writable %C
    : (tensor<3x8x256xf32>, memref<3x8x256xf32>) -> ()
  return
}

// -----

// A row-major A that all matmuls read becomes a column-major B that they do, for which linalg.batch_matmul has no map.
// A bias of the rows becomes one of the columns.
//
// CHECK-DAG: #[[b:.+]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-DAG: #[[bias:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: func.func @batch_with_bias(
// CHECK: [[product:%.+]] = linalg.contract indexing_maps = [#{{.+}}, #[[b]], #{{.+}}] ins(%{{.+}}, %{{.+}} : tensor<3x128x256xf16>, tensor<8x128xf16>)
// CHECK: linalg.generic {indexing_maps = [#[[same:.+]], #[[bias]], #[[same]]]
// CHECK-SAME: ins([[product]], %{{.+}} : tensor<3x256x8xf32>, tensor<3x8xf32>)
#a = affine_map<(b, m, n, k) -> (m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
#same = affine_map<(b, i, j) -> (b, i, j)>
#rows = affine_map<(b, i, j) -> (b, i)>
func.func @batch_with_bias(%A: memref<8x128xf16>, %B: memref<3x128x256xf16>, %D: tensor<3x8xf32>,
                           %C: memref<3x8x256xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<3x128x256xf16> to tensor<3x128x256xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x8x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x8x256xf32>) -> tensor<3x8x256xf32>
  %product = linalg.batch_matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<8x128xf16>, tensor<3x128x256xf16>)
                                 outs(%start : tensor<3x8x256xf32>) -> tensor<3x8x256xf32>
  %c = bufferization.to_tensor %C restrict writable : memref<3x8x256xf32> to tensor<3x8x256xf32>
  %sum = linalg.generic {indexing_maps = [#same, #rows, #same], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%product, %D : tensor<3x8x256xf32>, tensor<3x8xf32>) outs(%c : tensor<3x8x256xf32>) {
  ^bb0(%x: f32, %d: f32, %y: f32):
    %s = arith.addf %x, %d : f32
    linalg.yield %s : f32
  } -> tensor<3x8x256xf32>
  bufferization.materialize_in_destination %sum in restrict writable %C
    : (tensor<3x8x256xf32>, memref<3x8x256xf32>) -> ()
  return
}

// -----

func.func @inserted_on_the_way(%A: memref<8x128xf16>, %B: memref<128x8xf16>, %C: memref<8x8xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x8xf16> to tensor<128x8xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<8x8xf32> to tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %rows = tensor.extract_slice %a[0, 0] [4, 128] [1, 1] : tensor<8x128xf16> to tensor<4x128xf16>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %product = linalg.matmul ins(%rows, %b : tensor<4x128xf16>, tensor<128x8xf16>)
                           outs(%start : tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-error @below {{expected a matmul, a fill or an elementwise op between the operands and C}}
  %inserted = tensor.insert_slice %product into %c[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<8x8xf32>
  bufferization.materialize_in_destination %inserted in restrict writable %C : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  return
}

// -----

// C is columns of a larger buffer: the view has its pitch.
//
// CHECK-LABEL: func.func @columns
// CHECK: [[view:%.+]] = memref.transpose %C (d0, d1) -> (d1, d0) : memref<8x8xf32, strided<[16, 1], offset: 4>> to memref<8x8xf32, strided<[1, 16], offset: 4>>
// CHECK: linalg.matmul
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable [[view]]
func.func @columns(%A: memref<8x128xf16>, %B: memref<128x8xf16>, %C: memref<8x8xf32, strided<[16, 1], offset: 4>>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x8xf16> to tensor<128x8xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<8x8xf32, strided<[16, 1], offset: 4>> to tensor<8x8xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x128xf16>, tensor<128x8xf16>)
                           outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  bufferization.materialize_in_destination %product in restrict writable %C
    : (tensor<8x8xf32>, memref<8x8xf32, strided<[16, 1], offset: 4>>) -> ()
  return
}

// -----

func.func @strided(%A: memref<8x128xf16>, %B: memref<128x8xf16>, %C: memref<8x8xf32, strided<[1, 8]>>) {
  %a = bufferization.to_tensor %A restrict : memref<8x128xf16> to tensor<8x128xf16>
  %b = bufferization.to_tensor %B restrict : memref<128x8xf16> to tensor<128x8xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<8x8xf32, strided<[1, 8]>> to tensor<8x8xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x128xf16>, tensor<128x8xf16>)
                           outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-error @below {{expected a row-major C, found memref<8x8xf32, strided<[1, 8]>>}}
  bufferization.materialize_in_destination %product in restrict writable %C : (tensor<8x8xf32>, memref<8x8xf32, strided<[1, 8]>>) -> ()
  return
}

// -----

func.func @argument(%D: tensor<16x8xf32>, %C: memref<16x8xf32>) {
  // expected-error @below {{expected a result that a matmul computes}}
  bufferization.materialize_in_destination %D in restrict writable %C : (tensor<16x8xf32>, memref<16x8xf32>) -> ()
  return
}

// -----

// expected-error @below {{expected a bufferization.materialize_in_destination, found none}}
module {
  func.func @unwritten(%A: memref<8x128xf16>) {
    return
  }
}
