// Boxes are no longer than a matrix: with few rows of A, and where k is short. What they leave of a tile is zero from the
// start.
//
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --set block_m=64 --set block_n=64 --set consumer_warpgroups=1 --set stages=8
// RUN: %stepladder payload matmul --m 16 --n 512 --k 512 | %{opt} --through shrink_tma_boxes | FileCheck %s
// RUN: %stepladder payload matmul --m 128 --n 512 --k 24 | %{opt} --through shrink_tma_boxes | FileCheck %s --check-prefix=SHORT
// RUN: %stepladder payload matmul --m 64 --n 512 --k 512 | %{opt} --through shrink_tma_boxes -o %t.fits
// RUN: %stepladder payload matmul --m 64 --n 512 --k 512 | %{opt} --through shrink_tma_boxes --without shrink_tma_boxes -o %t.without
// RUN: diff %t.fits %t.without
// RUN: %stepladder payload matmul --m 16 --n 512 --k 512 | %{opt} --set cluster_n=2 --through shrink_tma_boxes | FileCheck %s --check-prefix=SHARED
// RUN: %stepladder payload batch_matmul --batch 3 --m 16 --n 1024 --k 512 | %stepladder-opt - --pipeline wgmma --through shrink_tma_boxes | FileCheck %s --check-prefix=BATCH

// CHECK-DAG: #[[to_slot:.+]] = affine_map<()[s0] -> (s0 floordiv 384)>
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> ((s0 floordiv 8) mod 48 + 16)>
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0] -> (s0 * 8 - (s0 floordiv 8) * 64)>
// CHECK: [[zeros:%.+]] = arith.constant dense<0.000000e+00> : vector<8xf16>
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c16, %c64] : memref<*xf16> -> <tensor = memref<16x64xf16
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: [[ring:%.+]] = memref.alloc() {operand_a} : memref<8x1x64x64xf16
// CHECK: nvgpu.tma.prefetch.descriptor [[a_map]]
// Eight slots of 48 rows of eight units, by all threads, for TMA and the matrix unit to see.
// CHECK: scf.for [[unit:%.+]] = %thread_id_x to %c3072 step %c256
// CHECK-DAG: [[slot:%.+]] = affine.apply #[[to_slot]]()[[[unit]]]
// CHECK-DAG: [[row:%.+]] = affine.apply #[[to_row]]()[[[unit]]]
// CHECK-DAG: [[column:%.+]] = affine.apply #[[to_column]]()[[[unit]]]
// CHECK: vector.store [[zeros]], [[ring]][[[slot]], %c0, [[row]], [[column]]] {alignment = 16 : i64}
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NEXT: gpu.barrier
// 16 rows of A and 64 of B, of 128 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c10240
// CHECK: [[tile:%.+]] = memref.subview [[ring]]
// CHECK: [[rows:%.+]] = memref.subview [[tile]][0, 0] [16, 64] [1, 1]
// CHECK-NEXT: nvgpu.tma.async.load [[a_map]][{{.*}} to [[rows]] :
// CHECK: nvgpu.tma.async.load [[b_map]]

// SHORT: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// SHORT: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c24, %c64]
// SHORT: vector.store {{.*}}, %{{[a-z_0-9]+}}[{{.*}} : memref<8x1x64x64xf16
// SHORT: nvgpu.tma.async.load [[b_map]]

// What blocks of a cluster load for each other stays as it is.
// SHARED-NOT: vector.store
// SHARED: multicast_mask

// The matrices of a batch are as high as one of them.
// BATCH: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c1, %c16, %c64]
// BATCH: nvgpu.tma.async.load [[a_map]][%{{.*}}, %{{.*}}, %{{.*}}], {{.*}} -> memref<1x16x64xf16
