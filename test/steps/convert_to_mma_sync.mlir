// Fragments become registers: ldmatrix for A (four tiles) and B (two, transposed), mma.sync 16 x 8 x 16 for products. No
// transfer or contraction of fragments is left, and bf16, which upstream's conversion does not know, comes out as bf16.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline mma_sync
// RUN: %{opt} %payloads/accumulate.mlir --through hoist_accumulators | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} %payloads/accumulate.mlir --through convert_to_mma_sync | FileCheck %s
// RUN: %{opt} %payloads/accumulate_f16.mlir --through convert_to_mma_sync | FileCheck %s --check-prefix=HALF
// RUN: %stepladder payload matmul --m 256 --n 256 --k 128 --a-type bf16 --b-type bf16 -o %t.bf16
// RUN: %{opt} %t.bf16 --through convert_to_mma_sync | FileCheck %s --check-prefix=BF16
// RUN: %stepladder payload matmul --m 256 --n 256 --k 128 --a-type f32 --b-type f32 -o %t.f32
// RUN: %{opt} %t.f32 --through convert_to_mma_sync | FileCheck %s --check-prefix=TF32
// RUN: %stepladder payload matmul --m 256 --n 256 --k 128 --a-type i8 --b-type i8 --acc-type i32 --c-type i32 -o %t.i8
// RUN: %{opt} %t.i8 --set warp_n=32 --through convert_to_mma_sync | FileCheck %s --check-prefix=I8
// RUN: %stepladder payload matmul --m 256 --n 256 --k 128 --a-layout column --b-layout column -o %t.columns
// RUN: %{opt} %t.columns --through convert_to_mma_sync | FileCheck %s --check-prefix=COLUMNS

// BEFORE: vector.contract
// BEFORE-NOT: ldmatrix

// CHECK-NOT: vector.contract
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = false} : memref<3x128x32xf16, {{.*}} -> vector<4x2xf16>
// CHECK: nvgpu.ldmatrix %{{.*}} {numTiles = 2 : i32, transpose = true} : memref<3x32x128xf16, {{.*}} -> vector<2x2xf16>
// CHECK: nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK-NOT: vector.contract

// HALF: nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>

// BF16-NOT: {{[x ]}}f16
// BF16: nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
// BF16-NOT: {{[x ]}}f16

// TF32: nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>)

// I8: nvgpu.mma.sync(%{{.*}}) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>)

// A's stored tile has k rows and is transposed when it is loaded; B's has n rows and is not.
// COLUMNS: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = true} : memref<3x32x128xf16,
// COLUMNS: nvgpu.ldmatrix %{{.*}} {numTiles = 2 : i32, transpose = false} : memref<3x128x32xf16,
