// Every way to write the matmul becomes the normal form: buffers at the boundary, tensors inside, C updated in place.
// A function on tensors hands its product back in the buffer that the accumulator came from, and in a new last argument
// where it came from nothing.
//
// DEFINE: %{normalize} = --pipeline wmma --through normalize_payload
// RUN: %stepladder-opt %payloads/on_memrefs.mlir | FileCheck %s --check-prefix=BEFORE
// RUN: %stepladder-opt %payloads/on_memrefs.mlir %{normalize} | FileCheck %s
// RUN: %stepladder-opt %payloads/on_tensors.mlir %{normalize} | FileCheck %s
// RUN: %stepladder-opt %payloads/on_memrefs_from_zero.mlir %{normalize} | FileCheck %s --check-prefix=ZERO
// RUN: %stepladder-opt %payloads/on_tensors_from_zero.mlir %{normalize} | FileCheck %s --check-prefix=ZERO
// RUN: %stepladder-opt %payloads/c_first.mlir %{normalize} | FileCheck %s --check-prefix=ORDER

// BEFORE-NOT: bufferization
// BEFORE: linalg.matmul ins(%{{.*}}, %{{.*}} : memref<256x128xf16>, memref<128x256xf16>)

// CHECK: func.func @matmul([[A:%.+]]: memref<256x128xf16>, [[B:%.+]]: memref<128x256xf16>, [[C:%.+]]: memref<256x256xf32>) {
// CHECK-DAG: [[a:%.+]] = bufferization.to_tensor [[A]] restrict : memref<256x128xf16> to tensor<256x128xf16>
// CHECK-DAG: [[b:%.+]] = bufferization.to_tensor [[B]] restrict : memref<128x256xf16> to tensor<128x256xf16>
// CHECK-DAG: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable : memref<256x256xf32> to tensor<256x256xf32>
// CHECK: [[d:%.+]] = linalg.matmul ins([[a]], [[b]] : {{.*}}) outs([[c]] : tensor<256x256xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
// CHECK-NEXT: return
// CHECK-NEXT: }

// ZERO: func.func @matmul([[A:%.+]]: memref<256x128xf16>, [[B:%.+]]: memref<128x256xf16>, [[C:%.+]]: memref<256x256xf32>) {
// ZERO-NOT: tensor.empty
// ZERO: [[c:%.+]] = bufferization.to_tensor [[C]] restrict writable
// ZERO: [[zeros:%.+]] = linalg.fill ins(%{{.*}} : f32) outs([[c]] : tensor<256x256xf32>)
// ZERO: [[d:%.+]] = linalg.matmul ins({{.*}}) outs([[zeros]] : tensor<256x256xf32>)
// ZERO-NEXT: bufferization.materialize_in_destination [[d]] in restrict writable [[C]]
// ZERO-NEXT: return
// ZERO-NEXT: }

// ORDER: func.func @matmul([[C:%.+]]: memref<256x256xf32>, [[B:%.+]]: memref<128x256xf16>, [[A:%.+]]: memref<256x128xf16>) {
// ORDER: [[a:%.+]] = bufferization.to_tensor [[A]]
// ORDER: [[b:%.+]] = bufferization.to_tensor [[B]]
// ORDER: linalg.matmul ins([[a]], [[b]]
// ORDER: bufferization.materialize_in_destination %{{.*}} in restrict writable [[C]]
