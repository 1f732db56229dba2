// Fragments of sub-step s + 1 are loaded in front of the products of s. The first ones are loaded in front of the loop,
// behind a wait and a barrier of their own, and in the last sub-step for the next iteration: wait, barrier, loads, products.
// They travel as iter_args. Left out, an iteration begins with wait and barrier.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --through rotate_loop --pipeline
// RUN: %{opt} mma_sync -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=VALUES
// RUN: %{opt} mma_sync --set block_k=64 | FileCheck %s --check-prefix=FOUR
// RUN: %{opt} wmma --set prefetch=cp_async --set stages=3 | FileCheck %s --check-prefix=WMMA
// RUN: %{opt} mma_sync --without rotate_loop,interleave_copies | FileCheck %s --check-prefix=WITHOUT

// In front of the loop: A's four fragments of sub-step 0, and B's eight, joined in four loads.
// CHECK: gpu.func @matmul_kernel
// CHECK-COUNT-16: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-NOT: nvgpu.ldmatrix
// 32 sums, two groups in flight, two places, less the group and the place that only the head needs; and eight fragments.
// CHECK: scf.for %{{\w+}} = %c0 to %c128 step %c32 iter_args({{.*}}vector<4x2xf16>, vector<4x2xf16>, vector<4x2xf16>, vector<4x2xf16>, vector<4x2xf16>, vector<4x2xf16>, vector<4x2xf16>, vector<4x2xf16>) {
// CHECK-NOT: {{nvgpu.device_async_wait|gpu.barrier|nvgpu.ldmatrix|nvgpu.mma.sync}}
// CHECK-COUNT-8: nvgpu.device_async_copy
// CHECK-NEXT: nvgpu.device_async_create_group
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.mma.sync}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.ldmatrix}}
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.mma.sync|nvgpu.ldmatrix}}
// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.mma.sync}}
// CHECK-COUNT-8: nvgpu.ldmatrix
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.ldmatrix}}
// CHECK-COUNT-32: nvgpu.mma.sync
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.ldmatrix|nvgpu.mma.sync}}
// CHECK: scf.yield
// CHECK-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.ldmatrix|nvgpu.mma.sync}}

// The products of sub-step 0 take what came with the iteration, and those of sub-step 1 what the iteration loaded; what it
// loads behind the barrier, at the place of the next tile, is only handed on.
// VALUES: [[first:%\w+]] = nvgpu.ldmatrix [[A:%\w+]][%c0, [[row:%\w+]], [[column:%\w+]]] {numTiles = 4 : i32, transpose = false}
// VALUES: scf.for {{.*}} [[here:%\w+]] = %c0, [[next:%\w+]] = %c1, [[carried:%\w+]] = [[first]],
// VALUES: nvgpu.device_async_copy
// VALUES: [[second:%\w+]] = nvgpu.ldmatrix [[A]]{{\[}}[[here]], [[row]], %{{\w+}}] {numTiles = 4 : i32, transpose = false}
// VALUES: [[sum:%\w+]] = nvgpu.mma.sync([[carried]], %{{\w+}}, %{{\w+}})
// VALUES: gpu.barrier
// VALUES: [[handed:%\w+]] = nvgpu.ldmatrix [[A]]{{\[}}[[next]], [[row]], [[column]]] {numTiles = 4 : i32, transpose = false}
// VALUES-NOT: nvgpu.mma.sync([[handed]],
// VALUES: [[total:%\w+]] = nvgpu.mma.sync([[second]], %{{\w+}}, [[sum]])
// VALUES-NOT: nvgpu.mma.sync([[handed]],
// VALUES: scf.yield [[total]], {{.*}}, [[handed]],

// Four sub-steps: one barrier, in front of the loads for the next iteration.
// FOUR: scf.for
// FOUR-COUNT-8: nvgpu.ldmatrix
// FOUR-COUNT-32: nvgpu.mma.sync
// FOUR-COUNT-8: nvgpu.ldmatrix
// FOUR-COUNT-32: nvgpu.mma.sync
// FOUR-COUNT-8: nvgpu.ldmatrix
// FOUR-COUNT-32: nvgpu.mma.sync
// FOUR: nvgpu.device_async_wait
// FOUR-NEXT: gpu.barrier
// FOUR-COUNT-8: nvgpu.ldmatrix
// FOUR-COUNT-32: nvgpu.mma.sync
// FOUR-NOT: {{nvgpu.device_async|gpu.barrier|nvgpu.ldmatrix|nvgpu.mma.sync}}
// FOUR: scf.yield

// WMMA: nvgpu.device_async_wait
// WMMA-NEXT: gpu.barrier
// WMMA-COUNT-8: gpu.subgroup_mma_load_matrix %{{.*}}[%c0, %{{.*}}Op">
// WMMA: scf.for {{.*}}!gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp">
// WMMA-NOT: gpu.barrier
// WMMA-COUNT-8: gpu.subgroup_mma_load_matrix
// WMMA-NOT: {{gpu.subgroup_mma_load_matrix|gpu.barrier}}
// WMMA-COUNT-16: gpu.subgroup_mma_compute
// WMMA-NOT: gpu.subgroup_mma
// WMMA: nvgpu.device_async_wait
// WMMA-NEXT: gpu.barrier
// WMMA-COUNT-8: gpu.subgroup_mma_load_matrix
// WMMA-NOT: {{gpu.subgroup_mma_load_matrix|gpu.barrier}}
// WMMA-COUNT-16: gpu.subgroup_mma_compute
// WMMA-NOT: {{gpu.subgroup_mma_load_matrix|gpu.subgroup_mma_compute|gpu.barrier}}
// WMMA: scf.yield

// WITHOUT: gpu.func @matmul_kernel
// WITHOUT-NOT: {{gpu.barrier|nvgpu.ldmatrix|nvgpu.device_async_wait}}
// WITHOUT: scf.for
// WITHOUT-NOT: {{nvgpu.ldmatrix|vector<4x2xf16>}}
// WITHOUT: nvgpu.device_async_wait
// WITHOUT-NEXT: gpu.barrier
// WITHOUT-COUNT-64: nvgpu.mma.sync
// WITHOUT-NOT: gpu.barrier
// WITHOUT: nvgpu.device_async_create_group
