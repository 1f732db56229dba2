// Two fragments of B come with one ldmatrix of four tiles: eight loads a k sub-step become four.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through join_fragment_loads | FileCheck %s
// RUN: %{opt} --through copy_asynchronously --without join_fragment_loads | FileCheck %s --check-prefix=WITHOUT

// CHECK-NOT: numTiles = 2
// CHECK-COUNT-8: nvgpu.ldmatrix %{{.*}} {numTiles = 4 : i32, transpose = true} : memref<3x32x128xf16, {{.*}} -> vector<4x2xf16>
// CHECK-NOT: transpose = true

// WITHOUT-COUNT-16: nvgpu.ldmatrix %{{.*}} {numTiles = 2 : i32, transpose = true}
