// The blocks of a cluster that share a tile load a part each, for all of them; each still expects the bytes of whole
// tiles, and a slot is free when all blocks that read what is loaded have said so.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma --through multicast_tiles
// RUN: %stepladder payload matmul --m 1024 --n 1024 --k 512 -o %t.mlir
// RUN: %{opt} --set cluster_m=2 -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=RELEASES
// RUN: %{opt} --set cluster_n=2 | FileCheck %s --check-prefix=COLUMNS
// RUN: %{opt} --set cluster_m=2 --set cluster_n=2 | FileCheck %s --check-prefix=BOTH
// RUN: %{opt} --set cluster_m=2 --set block_n=64 | FileCheck %s --check-prefix=ROWS
// RUN: %{opt} --set cluster_m=2 --without multicast_tiles | FileCheck %s --check-prefix=WITHOUT
// RUN: %stepladder payload batch_matmul --batch 3 --m 1024 --n 1024 --k 512 | %stepladder-opt - --pipeline wgmma --through multicast_tiles --set cluster_m=2 | FileCheck %s --check-prefix=BATCH
// RUN: %stepladder payload batch_matmul --batch 3 --m 1024 --n 1024 --k 512 | %stepladder-opt - --pipeline wgmma --through multicast_tiles --set cluster_m=2 --set block_n=64 | FileCheck %s --check-prefix=BATCH-ROWS
// RUN: %{opt} -o %t.one
// RUN: %{opt} --without multicast_tiles -o %t.without
// RUN: diff %t.one %t.without

// Two blocks share B's tile of four boxes: two each. A's is each block's own.
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c128, %c64]
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// Two warpgroups of each of two blocks empty a slot.
// CHECK: nvgpu.mbarrier.init {{.*}}, %c1 :
// CHECK: nvgpu.mbarrier.init {{.*}}, %c4 :
// No block loads, or arrives, where barriers may not be initialised yet.
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NOT: gpu.barrier
// CHECK: nvgpu.mbarrier.get
// CHECK: nvvm.inline_ptx "mapa.shared::cluster.u32
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c49152
// CHECK: nvgpu.tma.async.load [[a_map]][{{.*}} to %{{[a-z0-9_]+}} : {{.*}}memref<128x64xf16
// CHECK: [[mask:%.+]] = arith.trunci %{{.*}} : i32 to i16
// CHECK: nvgpu.tma.async.load [[b_map]][{{.*}} multicast_mask = [[mask]] : {{.*}}memref<64x64xf16
// CHECK: nvgpu.tma.async.load [[b_map]][{{.*}} multicast_mask = [[mask]] : {{.*}}memref<64x64xf16
// CHECK-NOT: nvgpu.tma.async.load

// Two threads of a warpgroup release a slot, one in each block; in the end no block leaves while others write to it.
// RELEASES: [[remote:%.+]] = nvvm.inline_ptx "mapa.shared::cluster.u32 {$w0}, {$r0}, {$r1};"
// RELEASES: nvgpu.warpgroup.mma %
// RELEASES-NOT: nvgpu.mbarrier.arrive
// RELEASES: arith.cmpi ult, %{{.*}}, %c2
// RELEASES: [[barrier:%.+]] = arith.addi [[remote]], %{{.*}} : i32
// RELEASES-NEXT: nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64 _, [{$r0}];" ro([[barrier]] : i32)
// RELEASES-NOT: nvgpu.mbarrier.arrive
// RELEASES: nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64
// RELEASES-NOT: {{nvgpu.mbarrier.arrive|mbarrier.arrive.shared}}
// RELEASES: nvvm.cluster.arrive
// RELEASES-NEXT: nvvm.cluster.wait
// RELEASES-NEXT: gpu.terminator

// Two blocks beside each other share A's one box, and load half of its rows each.
// COLUMNS: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64] : memref<*xf16> -> <tensor = memref<64x64xf16,
// COLUMNS: [[b_map:%.+]] = nvgpu.tma.create.descriptor
// COLUMNS: nvgpu.tma.async.load [[a_map]][{{.*}} multicast_mask = %{{.*}} : {{.*}}memref<64x64xf16
// COLUMNS-NOT: multicast_mask
// COLUMNS-COUNT-4: nvgpu.tma.async.load [[b_map]]
// COLUMNS-NOT: {{multicast_mask|nvgpu.tma.async.load}}

// 2 x 2: a block's loads reach three blocks, itself included; 3 x 2 warpgroups.
// BOTH: nvgpu.mbarrier.init {{.*}}, %c6 :
// BOTH: nvgpu.tma.async.load {{.*}} multicast_mask = [[a_mask:%.+]] : {{.*}}memref<64x64xf16
// BOTH: nvgpu.tma.async.load {{.*}} multicast_mask = [[b_mask:%.+]] : {{.*}}memref<64x64xf16
// BOTH: nvgpu.tma.async.load {{.*}} multicast_mask = [[b_mask]] :
// BOTH-NOT: nvgpu.tma.async.load
// BOTH: arith.cmpi ult, %{{.*}}, %c3

// B's tile of one box, in two parts of 32 rows.
// ROWS: box[%c32, %c64] : memref<*xf16> -> <tensor = memref<32x64xf16,
// ROWS: nvgpu.tma.async.load {{.*}} multicast_mask = %{{.*}} : {{.*}}memref<32x64xf16

// Clusters without multicast: each block loads all that it reads.
// WITHOUT: gpu.launch clusters
// WITHOUT-NOT: {{multicast_mask|nvvm.cluster|mapa}}
// WITHOUT: gpu.barrier
// WITHOUT-NOT: {{multicast_mask|nvvm.cluster|mapa}}
// WITHOUT: gpu.terminator

// The blocks of a cluster share tiles of one matmul of a batch.
// BATCH: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c1, %c64, %c64]
// BATCH: nvgpu.tma.async.load [[b_map]][%{{.*}}, %{{.*}}, %{{.*}}], {{.*}} multicast_mask = {{.*}} -> memref<1x64x64xf16
// BATCH-ROWS: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c1, %c32, %c64]
// BATCH-ROWS: nvgpu.tma.async.load [[b_map]][%{{.*}}, %{{.*}}, %{{.*}}], {{.*}} multicast_mask = {{.*}} -> memref<1x32x64xf16
