// No tensors are left, and C is updated in place: its tile is a view of the argument, and nothing is allocated or
// copied but the tile in shared memory.
//
// RUN: %stepladder-opt %s --pipeline wmma --step bufferize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @accumulate(
// CHECK-NOT: {{tensor<|bufferization}}
// CHECK: [[c:%.+]] = memref.subview %C{{\[}}%{{.*}}, 0] [16, 32] [1, 1] : memref<32x32xf32>
// CHECK-SAME: to memref<16x32xf32, strided<[32, 1], offset: ?>>
// CHECK: scf.for %{{[^:]*}} {
// CHECK: memref.subview %{{.*}}[0, %{{.*}}] [16, 16] [1, 1] : {{.*}} to memref<16x16xf16, strided<[64, 1], offset: ?>>
// CHECK: memref.alloc() {operand_a} : memref<16x16xf16, #gpu.address_space<workgroup>>
// CHECK: linalg.copy {operand_a}
// CHECK: linalg.matmul ins({{.*}}) outs([[c]] : memref<16x32xf32, strided<[32, 1], offset: ?>>)
// CHECK-NOT: {{tensor<|bufferization|memref.alloc|memref.copy|linalg.copy}}
// CHECK: // -----
func.func @accumulate(%A: memref<32x64xf16>, %B: memref<64x32xf16>, %C: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %a = bufferization.to_tensor %A restrict : memref<32x64xf16> to tensor<32x64xf16>
  %b = bufferization.to_tensor %B restrict : memref<64x32xf16> to tensor<64x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<32x32xf32> to tensor<32x32xf32>
  %d = scf.forall (%i) = (0) to (32) step (16) shared_outs(%out = %c) -> (tensor<32x32xf32>) {
    %a_rows = tensor.extract_slice %a[%i, 0] [16, 64] [1, 1] : tensor<32x64xf16> to tensor<16x64xf16>
    %c_rows = tensor.extract_slice %out[%i, 0] [16, 32] [1, 1] : tensor<32x32xf32> to tensor<16x32xf32>
    %sums = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %c_rows) -> (tensor<16x32xf32>) {
      %a_tile = tensor.extract_slice %a_rows[0, %k] [16, 16] [1, 1] : tensor<16x64xf16> to tensor<16x16xf16>
      %b_tile = tensor.extract_slice %b[%k, 0] [16, 32] [1, 1] : tensor<64x32xf16> to tensor<16x32xf16>
      %shared = memref.alloc() {operand_a} : memref<16x16xf16, #gpu.address_space<workgroup>>
      %from = bufferization.to_buffer %a_tile read_only : tensor<16x16xf16>
          to memref<16x16xf16, strided<[?, ?], offset: ?>>
      linalg.copy {operand_a} ins(%from : memref<16x16xf16, strided<[?, ?], offset: ?>>)
          outs(%shared : memref<16x16xf16, #gpu.address_space<workgroup>>)
      %staged = bufferization.to_tensor %shared restrict writable
          : memref<16x16xf16, #gpu.address_space<workgroup>> to tensor<16x16xf16>
      %next = linalg.matmul ins(%staged, %b_tile : tensor<16x16xf16>, tensor<16x32xf16>)
          outs(%sum : tensor<16x32xf32>) -> tensor<16x32xf32>
      scf.yield %next : tensor<16x32xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sums into %out[%i, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<32x32xf32>
    }
  } {mapping = [#gpu.block<y>]}
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<32x32xf32>, memref<32x32xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @from_zero(
// CHECK-NOT: {{memref.alloc|memref.copy|tensor<}}
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%C : memref<16x32xf32>)
// CHECK-NEXT: linalg.matmul ins(%A, %B : {{.*}}) outs(%C : memref<16x32xf32>)
// CHECK-NEXT: return
func.func @from_zero(%A: memref<16x8xf16>, %B: memref<8x32xf16>, %C: memref<16x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<16x8xf16> to tensor<16x8xf16>
  %b = bufferization.to_tensor %B restrict : memref<8x32xf16> to tensor<8x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<16x32xf32> to tensor<16x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  %d = linalg.matmul ins(%a, %b : tensor<16x8xf16>, tensor<8x32xf16>)
      outs(%zeros : tensor<16x32xf32>) -> tensor<16x32xf32>
  bufferization.materialize_in_destination %d in restrict writable %C : (tensor<16x32xf32>, memref<16x32xf32>) -> ()
  return
}
