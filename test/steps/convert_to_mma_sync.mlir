// Fragments are registers with a known layout: A's by one ldmatrix of four tiles, B's by a transposed one of two, C's by
// each lane on its own, and products are mma.sync of 16 x 8 x 16. C = AB starts from zeros and never reads C.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through hoist_accumulators | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through convert_to_mma_sync -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=LOADS
// RUN: %stepladder-opt %payloads/accumulate_f16.mlir --pipeline mma_sync --through convert_to_mma_sync | FileCheck %s --check-prefix=HALF
// RUN: %stepladder-opt %payloads/product.mlir --pipeline mma_sync --through convert_to_mma_sync | FileCheck %s --check-prefix=ZERO
// DEFINE: %{payload} = %stepladder payload matmul --m 256 --n 256 --k 128
// DEFINE: %{convert} = %stepladder-opt - --pipeline mma_sync --through convert_to_mma_sync
// RUN: %{payload} --a-type bf16 --b-type bf16 | %{convert} | FileCheck %s --check-prefix=BF16
// RUN: %{payload} --a-type f32 --b-type f32 --b-layout column | %{convert} | FileCheck %s --check-prefix=TF32
// RUN: %{payload} --a-type i8 --b-type i8 --acc-type i32 --c-type i32 --b-layout column | %{convert} | FileCheck %s --check-prefix=I8
// RUN: %{payload} --a-type f32 --b-type f32 | %{convert} | FileCheck %s --check-prefix=ROWS
// RUN: %{payload} --a-layout column | %{convert} | FileCheck %s --check-prefix=COLUMN

// BEFORE-NOT: nvgpu.
// BEFORE: vector.transfer_read {{.*}} : memref<3x32x128xf16, #gpu.address_space<workgroup>>, vector<16x8xf16>
// BEFORE-COUNT-64: vector.contract {{.*}} : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
// BEFORE-NOT: {{vector.contract|nvgpu}}

// CHECK-NOT: {{vector.contract|vector<16x16|vector<16x8}}
// CHECK: gpu.lane_id
// 64 x 64 elements of C are 32 fragments of four elements a lane, in two rows of two.
// CHECK: [[upper:%.+]] = vector.load %C[%{{.*}}] {alignment = 8 : i64} : memref<256x256xf32>, vector<2xf32>
// CHECK: [[lower:%.+]] = vector.load %C[%{{.*}}] {alignment = 8 : i64} : memref<256x256xf32>, vector<2xf32>
// CHECK-COUNT-62: vector.load %C[
// CHECK-NOT: vector.load
// CHECK: [[d:%.+]]:32 = scf.for {{.*}} iter_args([[sum:%\w+]] = %{{.*}}) -> (vector<2x2xf32>,
// CHECK: vector.transfer_write {{.*}} : vector<8xf16>
// CHECK: gpu.barrier
// CHECK: [[a:%\w+]] = nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = false} : memref<3x128x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
// CHECK: [[b:%\w+]] = nvgpu.ldmatrix %{{.*}} {numTiles = 2 : i32, transpose = true} : memref<3x32x128xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
// CHECK: nvgpu.mma.sync([[a]], [[b]], [[sum]]) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK-COUNT-63: nvgpu.mma.sync
// CHECK-NOT: nvgpu.mma.sync
// CHECK: scf.yield
// CHECK: vector.extract [[d]]#
// CHECK-COUNT-64: vector.store %{{.*}}, %C[
// CHECK-NOT: {{vector.store|vector.contract|vector<16x16|vector<16x8}}

// 4 x 2 fragments of A and 8 x 2 of B, each loaded once.
// LOADS: gpu.barrier
// LOADS-COUNT-24: nvgpu.ldmatrix
// LOADS-NOT: nvgpu.ldmatrix

// HALF: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
// HALF-COUNT-63: nvgpu.mma.sync
// HALF: vector.store {{.*}}, %C[{{.*}} : memref<256x256xf16>, vector<2xf16>

// ZERO: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<2x2xf32>
// ZERO-NOT: vector.load
// ZERO: scf.for {{.*}} iter_args(%{{.*}} = [[zeros]], %{{.*}} = [[zeros]],
// ZERO-COUNT-64: vector.store %{{.*}}, %C[

// bf16 all the way, though upstream saw f16.
// BF16-NOT: {{[x:( ]f16}}
// BF16-COUNT-64: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
// BF16-NOT: {{[x:( ]f16|nvgpu.mma.sync}}

// TF32: nvgpu.ldmatrix %{{.*}} {numTiles = 2 : i32, transpose = false} : memref<3x128x32xf32, {{.*}} -> vector<2x1xf32>
// TF32-COUNT-128: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
// TF32-NOT: nvgpu.mma.sync

// I8-COUNT-32: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
// I8-NOT: nvgpu.mma.sync

// A row-major B of 32 bits: element by element.
// ROWS-NOT: transpose = true
// ROWS: memref.load %{{.*}} : memref<3x32x128xf32, #gpu.address_space<workgroup>>
// ROWS-NOT: transpose = true
// ROWS: nvgpu.mma.sync({{.*}}tf32Enabled

// A column-major A: transposed, and its second and third tile exchanged.
// COLUMN: [[a:%\w+]] = nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = true} : memref<3x32x128xf16, {{.*}} -> vector<4x2xf16>
// COLUMN-NEXT: [[a0:%\w+]] = vector.extract [[a]][0]
// COLUMN-NEXT: [[a2:%\w+]] = vector.extract [[a]][2]
// COLUMN-NEXT: [[a1:%\w+]] = vector.extract [[a]][1]
// COLUMN-NEXT: [[a3:%\w+]] = vector.extract [[a]][3]
// COLUMN: [[ordered:%\w+]] = vector.from_elements
// COLUMN: nvgpu.mma.sync([[ordered]],
