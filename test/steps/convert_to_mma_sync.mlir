// Fragments are registers with a known layout: A's by one ldmatrix of four tiles, B's by a transposed one of two, C's
// by each lane on its own, and products are mma.sync of 16 x 8 x 16. Copies stay.
//
// RUN: %stepladder-opt %s --pipeline mma_sync --step convert_to_mma_sync --set allow_tf32=true --set target=sm_90 --set warp_n=32 \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 2 - (s0 floordiv 4) * 8)>
// CHECK-DAG: #[[lower_row:.+]] = affine_map<()[s0] -> (s0 floordiv 4 + 8)>
// CHECK-LABEL: func.func @f16_f32(
// CHECK-NOT: {{vector.contract|vector<16x16|vector<16x8}}
// CHECK: [[lane:%.+]] = gpu.lane_id
// CHECK: [[i:%.+]] = affine.apply #[[row]]()[[[lane]]]
// CHECK: [[j:%.+]] = affine.apply #[[column]]()[[[lane]]]
// CHECK: [[upper:%.+]] = vector.load %C{{\[}}[[i]], [[j]]] {alignment = 8 : i64} : memref<16x16xf32>, vector<2xf32>
// CHECK: [[i_lower:%.+]] = affine.apply #[[lower_row]]()[[[lane]]]
// CHECK: [[lower:%.+]] = vector.load %C{{\[}}[[i_lower]], [[j]]] {alignment = 8 : i64}
// CHECK-SAME: : memref<16x16xf32>, vector<2xf32>
// CHECK: [[c:%.+]] = vector.from_elements {{.*}} : vector<2x2xf32>
// CHECK: vector.transfer_write %x, %A{{.*}} : vector<8xf16>
// CHECK: [[a:%.+]] = nvgpu.ldmatrix %A{{.*}} {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x2xf16>
// CHECK: [[b:%.+]] = nvgpu.ldmatrix %B{{.*}} {numTiles = 2 : i32, transpose = true} : {{.*}} -> vector<2x2xf16>
// CHECK: [[d:%.+]] = nvgpu.mma.sync([[a]], [[b]], [[c]]) {mmaShape = [16, 8, 16]}
// CHECK-SAME: : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK: [[upper:%.+]] = vector.extract [[d]][0]
// CHECK: vector.store [[upper]], %C{{\[}}[[i]], [[j]]] {alignment = 8 : i64}
// CHECK: [[lower:%.+]] = vector.extract [[d]][1]
// CHECK: vector.store [[lower]], %C{{\[}}[[i_lower]], [[j]]] {alignment = 8 : i64}
// CHECK-NOT: {{vector.store|vector.contract|vector<16x16|vector<16x8}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @f16_f32(%A: memref<16x32xf16, #space>, %B: memref<16x16xf16, #space>, %C: memref<16x16xf32>,
                   %x: vector<8xf16>) {
  %zero = arith.constant 0.0 : f16
  %zero_c = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c = vector.transfer_read %C[%c0, %c0], %zero_c {in_bounds = [true, true]} : memref<16x16xf32>, vector<16x8xf32>
  vector.transfer_write %x, %A[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, memref<16x32xf16, #space>
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x32xf16, #space>, vector<16x16xf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf16, #space>, vector<16x8xf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %c : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  return
}

// -----

// C = AB starts from zeros and never reads C. Pairs of f16 are aligned to 4 bytes.
// CHECK-LABEL: func.func @f16_f16(
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<2x2xf16>
// CHECK-NOT: vector.load
// CHECK: nvgpu.mma.sync({{.*}}, {{.*}}, [[zeros]]) {mmaShape = [16, 8, 16]}
// CHECK-SAME: : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
// CHECK: vector.store {{.*}}, %C[{{.*}} {alignment = 4 : i64} : memref<16x16xf16>, vector<2xf16>
// CHECK: vector.store
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @f16_f16(%A: memref<16x64xf16, #space>, %B: memref<64x16xf16, #space>, %C: memref<16x16xf16>) {
  %zero = arith.constant 0.0 : f16
  %zeros = arith.constant dense<0.0> : vector<16x8xf16>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xf16, #space>, vector<16x16xf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf16, #space>, vector<16x8xf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf16>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf16>, memref<16x16xf16>
  return
}

// -----

// bf16 all the way, though upstream sees f16.
// CHECK-LABEL: func.func @bf16(
// CHECK-NOT: {{[x:( ]f16}}
// CHECK: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>)
// CHECK-SAME: -> vector<2x2xf32>
// CHECK-NOT: {{[x:( ]f16}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @bf16(%A: memref<16x64xbf16, #space>, %B: memref<64x16xbf16, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xbf16, #space>, vector<16x16xbf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<64x16xbf16, #space>, vector<16x8xbf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xbf16>, vector<16x8xbf16> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  return
}

// -----

// CHECK-LABEL: func.func @tf32(
// CHECK: nvgpu.ldmatrix %B{{.*}} {numTiles = 2 : i32, transpose = false} : {{.*}} -> vector<2x1xf32>
// CHECK: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 8], tf32Enabled}
// CHECK-SAME: : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @tf32(%A: memref<16x64xf32, #space>, %B: memref<16x64xf32, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x64xf32, #space>, vector<16x8xf32>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x64xf32, #space>, vector<8x8xf32>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x8xf32>, vector<8x8xf32> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  return
}

// -----

// Fragments of f64 are one element of A, of B, and two of C.
// CHECK-LABEL: func.func @f64(
// CHECK: vector.load %A{{.*}} {alignment = 8 : i64} : {{.*}}, vector<1xf64>
// CHECK: memref.load %B
// CHECK: nvgpu.mma.sync({{.*}}) {mmaShape = [8, 8, 4]} : (vector<1x1xf64>, vector<1x1xf64>, vector<1x2xf64>) -> vector<1x2xf64>
// CHECK: vector.store {{.*}} %C{{.*}} {alignment = 8 : i64} : memref<16x16xf64>, vector<2xf64>
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @f64(%A: memref<16x64xf64, #space>, %B: memref<64x16xf64, #space>, %C: memref<16x16xf64>) {
  %zero = arith.constant 0.0 : f64
  %zeros = arith.constant dense<0.0> : vector<8x8xf64>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x64xf64, #space>, vector<8x4xf64>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf64, #space>, vector<4x8xf64>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<8x4xf64>, vector<4x8xf64> into vector<8x8xf64>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<8x8xf64>, memref<16x16xf64>
  return
}

// -----

// Fragments of fp8 have the layout of i8.
// CHECK-LABEL: func.func @fp8(
// CHECK-NOT: i8
// CHECK: nvgpu.ldmatrix %A{{.*}} {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x4xf8E5M2>
// CHECK: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 32]} : (vector<4x4xf8E5M2>, vector<2x4xf8E5M2>, vector<2x2xf32>)
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @fp8(%A: memref<16x64xf8E5M2, #space>, %B: memref<16x64xf8E5M2, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f8E5M2
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xf8E5M2, #space>, vector<16x32xf8E5M2>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xf8E5M2, #space>, vector<8x32xf8E5M2>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x32xf8E5M2>, vector<8x32xf8E5M2> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  return
}

// -----

// A row-major B of 32 bits: element by element.
// CHECK-LABEL: func.func @tf32_rows(
// CHECK-NOT: transpose = true
// CHECK: [[upper:%.+]] = memref.load %B[
// CHECK: [[lower:%.+]] = memref.load %B[
// CHECK: [[b:%.+]] = vector.from_elements [[upper]], [[lower]] : vector<2x1xf32>
// CHECK-NOT: transpose = true
// CHECK: nvgpu.mma.sync({{.*}}, [[b]], {{.*}}tf32Enabled
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @tf32_rows(%A: memref<16x64xf32, #space>, %B: memref<64x16xf32, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x64xf32, #space>, vector<16x8xf32>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf32, #space>, vector<8x8xf32>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x8xf32>, vector<8x8xf32> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  return
}

// -----

// CHECK-LABEL: func.func @i8(
// CHECK: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>)
// CHECK-SAME: -> vector<2x2xi32>
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @i8(%A: memref<16x64xi8, #space>, %B: memref<16x64xi8, #space>, %C: memref<16x16xi32>) {
  %zero = arith.constant 0 : i8
  %zeros = arith.constant dense<0> : vector<16x8xi32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x64xi8, #space>, vector<16x32xi8>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x64xi8, #space>, vector<8x32xi8>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x32xi8>, vector<8x32xi8> into vector<16x8xi32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xi32>, memref<16x16xi32>
  return
}

// -----

// A column-major A: transposed, and its second and third tile exchanged.
// CHECK-LABEL: func.func @column_major_a(
// CHECK: [[a:%.+]] = nvgpu.ldmatrix %A{{.*}} {numTiles = 4 : i32, transpose = true} : {{.*}} -> vector<4x2xf16>
// CHECK-NEXT: vector.extract [[a]][0]
// CHECK-NEXT: vector.extract [[a]][2]
// CHECK-NEXT: vector.extract [[a]][1]
// CHECK-NEXT: vector.extract [[a]][3]
// CHECK: [[ordered:%.+]] = vector.from_elements
// CHECK: nvgpu.mma.sync([[ordered]],
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @column_major_a(%A: memref<64x16xf16, #space>, %B: memref<64x16xf16, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<64x16xf16, #space>, vector<16x16xf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf16, #space>, vector<16x8xf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  return
}

// -----

#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @constant(%A: memref<16x64xbf16, #space>, %B: memref<64x16xbf16, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  // expected-error@+1 {{tc.reinterpret_elements: a constant other than zero of type bf16}}
  %one = arith.constant 1.0 : bf16
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xbf16, #space>, vector<16x16xbf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<64x16xbf16, #space>, vector<16x8xbf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xbf16>, vector<16x8xbf16> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  memref.store %one, %A[%c0, %c0] : memref<16x64xbf16, #space>
  return
}

// -----

#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @arithmetic(%A: memref<16x64xbf16, #space>, %B: memref<64x16xbf16, #space>, %C: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : vector<16x8xf32>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xbf16, #space>, vector<16x16xbf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<64x16xbf16, #space>, vector<16x8xbf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xbf16>, vector<16x8xbf16> into vector<16x8xf32>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
  %x = memref.load %A[%c0, %c0] : memref<16x64xbf16, #space>
  // expected-error@+1 {{tc.reinterpret_elements: arith.addf computes with elements of type bf16}}
  %y = arith.addf %x, %x : bf16
  memref.store %y, %A[%c0, %c0] : memref<16x64xbf16, #space>
  return
}

// -----

// expected-error@unknown {{the accumulator type must be f32, or f16 for operands of f16}}
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @bf16_sums(%A: memref<16x64xbf16, #space>, %B: memref<64x16xbf16, #space>, %C: memref<16x16xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : vector<16x8xbf16>
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<16x64xbf16, #space>, vector<16x16xbf16>
  %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]}
      : memref<64x16xbf16, #space>, vector<16x8xbf16>
  %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xbf16>, vector<16x8xbf16> into vector<16x8xbf16>
  vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xbf16>, memref<16x16xbf16>
  return
}

// -----

// A kernel in front keeps the alignments of its vectors.
// CHECK-LABEL: func.func @prepared(
// CHECK: vector.store %{{.*}}, %C{{.*}} {alignment = 8 : i64}
// CHECK: gpu.func @prepare(
// CHECK: vector.load %{{.*}} {alignment = 4 : i64} : memref<16x36xi8>, vector<4xi8>
// CHECK: vector.store %{{.*}} {alignment = 4 : i64} : memref<16x36xi8>, vector<4xi8>
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
module attributes {gpu.container_module} {
  func.func @prepared(%A: memref<16x64xf16, #space>, %B: memref<64x16xf16, #space>, %C: memref<16x16xf32>) {
    %zero = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<16x8xf32>
    %c0 = arith.constant 0 : index
    %0 = vector.transfer_read %A[%c0, %c0], %zero {in_bounds = [true, true]}
        : memref<16x64xf16, #space>, vector<16x16xf16>
    %1 = vector.transfer_read %B[%c0, %c0], %zero {in_bounds = [true, true]}
        : memref<64x16xf16, #space>, vector<16x8xf16>
    %2 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<add>} %0, %1, %zeros : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
    vector.transfer_write %2, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x16xf32>
    return
  }
  gpu.module @prepare {
    gpu.func @prepare(%Q: memref<16x36xi8>, %W: memref<16x36xi8>) kernel {
      %thread = gpu.thread_id x
      %c4 = arith.constant 4 : index
      %q = vector.load %Q[%thread, %c4] {alignment = 4 : i64} : memref<16x36xi8>, vector<4xi8>
      vector.store %q, %W[%thread, %c4] {alignment = 4 : i64} : memref<16x36xi8>, vector<4xi8>
      gpu.return
    }
  }
}
