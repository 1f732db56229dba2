// A thread copies one row in every pass of the block; the passes of A's tile are 32 rows apart (128 threads, four a row),
// those of B's 8. One barrier stands behind all copies, in front of the matmul.
//
// DEFINE: %{opt} = %stepladder-opt %payloads/accumulate.mlir --pipeline mma_sync
// RUN: %{opt} --through rasterize_blocks | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through map_copies_cyclically | FileCheck %s
// RUN: %refused 2 %{opt} --set block_n=256 --set block_k=16 --set warp_n=128 --set warp_m=32 | FileCheck %s --check-prefix=PASS

// BEFORE-COUNT-2: linalg.copy
// BEFORE-NOT: gpu.barrier

// CHECK: scf.for
// CHECK: [[t:%.+]] = gpu.thread_id x
// CHECK: memref.subview {{.*}} to memref<32x32xf16
// CHECK-COUNT-4: linalg.copy {operand_a} ins(%{{.*}} : memref<1x8xf16,
// CHECK-NOT: gpu.barrier
// CHECK: memref.subview {{.*}} to memref<8x128xf16
// CHECK-COUNT-4: linalg.copy {operand_b} ins(%{{.*}} : memref<1x8xf16,
// CHECK-NOT: linalg.copy
// CHECK: gpu.barrier
// CHECK: linalg.matmul
// CHECK-NOT: gpu.barrier

// PASS: error: step 'map_copies_cyclically' requires
