// The columns of the shared tiles are permuted by the row, in every access alike: in the copies that fill them and in
// the fragment loads.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step swizzle_shared_memory --split-input-file | FileCheck %s

// 32 elements a row: four columns of 16 bytes, permuted by two bits of the row.
// CHECK-LABEL: func.func @short_rows(
// CHECK: [[bits:%.+]] = arith.andi %i, %c6
// CHECK: [[shifted:%.+]] = arith.shli [[bits]], %c2
// CHECK-NEXT: [[column:%.+]] = arith.xori %j, [[shifted]]
// CHECK-NEXT: nvgpu.device_async_copy %A[%i, %j], %{{.*}}[%c0, %i, [[column]]], 8
// CHECK-NEXT: nvgpu.ldmatrix %{{.*}}[%c0, %i, [[column]]] {numTiles = 4 : i32, transpose = false}
#space = #gpu.address_space<workgroup>
func.func @short_rows(%A: memref<64x64xf16>, %i: index, %j: index) -> vector<4x2xf16> {
  %c0 = arith.constant 0 : index
  %S = memref.alloc() : memref<3x64x32xf16, #space>
  %copy = nvgpu.device_async_copy %A[%i, %j], %S[%c0, %i, %j], 8 : memref<64x64xf16> to memref<3x64x32xf16, #space>
  %0 = nvgpu.ldmatrix %S[%c0, %i, %j] {numTiles = 4 : i32, transpose = false}
      : memref<3x64x32xf16, #space> -> vector<4x2xf16>
  return %0 : vector<4x2xf16>
}

// -----

// 128 bytes a row: eight columns, by three bits.
// CHECK-LABEL: func.func @full_rows(
// CHECK: [[bits:%.+]] = arith.andi %i, %c7
// CHECK: [[shifted:%.+]] = arith.shli [[bits]], %c3
// CHECK-NEXT: [[column:%.+]] = arith.xori %j, [[shifted]]
// CHECK-NEXT: nvgpu.device_async_copy %A[%i, %j], %{{.*}}[%i, [[column]]], 8
// CHECK-NEXT: nvgpu.ldmatrix %{{.*}}[%i, [[column]]] {numTiles = 4 : i32, transpose = true}
#space = #gpu.address_space<workgroup>
func.func @full_rows(%A: memref<64x64xf16>, %i: index, %j: index) -> vector<4x2xf16> {
  %S = memref.alloc() : memref<64x64xf16, #space>
  %copy = nvgpu.device_async_copy %A[%i, %j], %S[%i, %j], 8 : memref<64x64xf16> to memref<64x64xf16, #space>
  %0 = nvgpu.ldmatrix %S[%i, %j] {numTiles = 4 : i32, transpose = true} : memref<64x64xf16, #space> -> vector<4x2xf16>
  return %0 : vector<4x2xf16>
}

// -----

// Sixteen columns, by four bits.
// CHECK-LABEL: func.func @long_rows(
// CHECK: [[bits:%.+]] = arith.andi %i, %c15
// CHECK: [[shifted:%.+]] = arith.shli [[bits]], %c3
// CHECK-NEXT: [[column:%.+]] = arith.xori %j, [[shifted]]
// CHECK-NEXT: nvgpu.device_async_copy %A[%i, %j], %{{.*}}[%i, [[column]]], 8
// CHECK-NEXT: nvgpu.ldmatrix %{{.*}}[%i, [[column]]] {numTiles = 4 : i32, transpose = true}
#space = #gpu.address_space<workgroup>
func.func @long_rows(%A: memref<64x128xf16>, %i: index, %j: index) -> vector<4x2xf16> {
  %S = memref.alloc() : memref<64x128xf16, #space>
  %copy = nvgpu.device_async_copy %A[%i, %j], %S[%i, %j], 8 : memref<64x128xf16> to memref<64x128xf16, #space>
  %0 = nvgpu.ldmatrix %S[%i, %j] {numTiles = 4 : i32, transpose = true} : memref<64x128xf16, #space> -> vector<4x2xf16>
  return %0 : vector<4x2xf16>
}

// -----

// CHECK-LABEL: func.func @global(
// CHECK-NEXT: memref.load %A[%i, %j]
// CHECK-NEXT: return
#space = #gpu.address_space<workgroup>
func.func @global(%A: memref<64x64xf16>, %i: index, %j: index) -> f16 {
  %0 = memref.load %A[%i, %j] : memref<64x64xf16>
  return %0 : f16
}

// -----

// A fused epilogue stores to a view of C, which the swizzle of the tiles takes no notice of.
// CHECK-LABEL: func.func @view(
// CHECK: [[column:%.+]] = arith.xori %j
// CHECK: nvgpu.ldmatrix %{{.*}}[%i, [[column]]]
// CHECK-NOT: memref.subview
// CHECK: vector.store %{{.*}}, %C[
#space = #gpu.address_space<workgroup>
func.func @view(%A: memref<64x64xf16>, %C: memref<64x64xf16>, %i: index, %j: index) -> vector<4x2xf16> {
  %S = memref.alloc() : memref<64x64xf16, #space>
  %copy = nvgpu.device_async_copy %A[%i, %j], %S[%i, %j], 8 : memref<64x64xf16> to memref<64x64xf16, #space>
  %0 = nvgpu.ldmatrix %S[%i, %j] {numTiles = 4 : i32, transpose = false} : memref<64x64xf16, #space> -> vector<4x2xf16>
  %view = memref.subview %C[%i, 0] [16, 64] [1, 1] : memref<64x64xf16> to memref<16x64xf16, strided<[64, 1], offset: ?>>
  %1 = vector.extract %0[0] : vector<2xf16> from vector<4x2xf16>
  vector.store %1, %view[%j, %j] : memref<16x64xf16, strided<[64, 1], offset: ?>>, vector<2xf16>
  return %0 : vector<4x2xf16>
}
