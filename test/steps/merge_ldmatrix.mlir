// Two fragments of B side by side come with one ldmatrix of four tiles: eight loads instead of sixteen. A's have four
// tiles already. A load that has no neighbour stays as it is. Left out, all do.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync --through merge_ldmatrix
// RUN: %{opt} -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=LOADS
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=JOINED
// RUN: %{opt} --without merge_ldmatrix -o %t.without
// RUN: FileCheck %s --input-file %t.without --check-prefix=WITHOUT
// RUN: %stepladder-opt %inputs/steps/fragment_loads.mlir --pipeline mma_sync --from merge_ldmatrix --through merge_ldmatrix | FileCheck %s --check-prefix=PAIRS

// CHECK: gpu.barrier
// CHECK: [[a:%\w+]] = nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = false} : memref<3x128x32xf16,
// CHECK: [[both:%\w+]] = nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = true} : memref<3x32x128xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
// CHECK-NEXT: [[l0:%\w+]] = vector.extract [[both]][0] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[l1:%\w+]] = vector.extract [[both]][1] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[l0s:%\w+]]:2 = vector.to_elements [[l0]]
// CHECK-NEXT: [[l1s:%\w+]]:2 = vector.to_elements [[l1]]
// CHECK-NEXT: [[left:%\w+]] = vector.from_elements [[l0s]]#0, [[l0s]]#1, [[l1s]]#0, [[l1s]]#1 : vector<2x2xf16>
// CHECK-NEXT: [[r0:%\w+]] = vector.extract [[both]][2] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[r1:%\w+]] = vector.extract [[both]][3] : vector<2xf16> from vector<4x2xf16>
// CHECK-NEXT: [[r0s:%\w+]]:2 = vector.to_elements [[r0]]
// CHECK-NEXT: [[r1s:%\w+]]:2 = vector.to_elements [[r1]]
// CHECK-NEXT: [[right:%\w+]] = vector.from_elements [[r0s]]#0, [[r0s]]#1, [[r1s]]#0, [[r1s]]#1 : vector<2x2xf16>
// CHECK: nvgpu.mma.sync([[a]], [[left]], %
// CHECK: nvgpu.mma.sync([[a]], [[right]], %
// CHECK-COUNT-62: nvgpu.mma.sync
// CHECK-NOT: nvgpu.mma.sync

// LOADS-NOT: numTiles = 2
// LOADS-COUNT-16: nvgpu.ldmatrix
// LOADS-NOT: {{nvgpu.ldmatrix|numTiles = 2}}

// JOINED-COUNT-8: {numTiles = 4 : i32, transpose = true}
// JOINED-NOT: transpose = true

// WITHOUT-NOT: numTiles = 4 : i32, transpose = true
// WITHOUT-COUNT-16: {numTiles = 2 : i32, transpose = true}
// WITHOUT-NOT: transpose = true

// Eight columns apart: joined. Sixteen apart, in another row, from another array, not transposed like it: not.
// PAIRS-LABEL: func.func @beside
// PAIRS: numTiles = 4 : i32, transpose = true
// PAIRS-NOT: nvgpu.ldmatrix
// PAIRS-LABEL: func.func @apart
// PAIRS-COUNT-2: numTiles = 2 : i32, transpose = true
// PAIRS-LABEL: func.func @another_row
// PAIRS-COUNT-2: numTiles = 2 : i32, transpose = true
// PAIRS-LABEL: func.func @another_array
// PAIRS-COUNT-2: numTiles = 2 : i32, transpose = true
// PAIRS-LABEL: func.func @another_order
// PAIRS: numTiles = 2 : i32, transpose = true
// PAIRS: numTiles = 2 : i32, transpose = false
// PAIRS-LABEL: func.func @not_affine
// PAIRS-COUNT-2: numTiles = 2 : i32, transpose = true
// PAIRS-LABEL: func.func @another_block
// PAIRS-COUNT-2: numTiles = 2 : i32, transpose = true
