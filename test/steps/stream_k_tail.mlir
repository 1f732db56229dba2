// The tiles of the last, partial round are divided along k: a block computes its whole tiles, then a part or two, each
// from its own first step of k to its own last. Who has the beginning of a tile stores, the others add, in turn.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 1024 --n 1280 --k 512 --no-accumulate
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --through pack_shared_memory
// RUN: %{payload} | %{opt} --set tile_scheduler=stream_k --set persistent_blocks=32 -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=TURNS
// RUN: %{payload} | %{opt} --set tile_scheduler=stream_k --set persistent_blocks=32 --set cluster_m=2 | FileCheck %s --check-prefix=CLUSTERS
// RUN: %{payload} | %{opt} --set tile_scheduler=stream_k --set persistent_blocks=40 -o %t.whole
// RUN: %{payload} | %{opt} --set persistent_blocks=40 -o %t.without
// RUN: diff %t.whole %t.without
// RUN: FileCheck %s --input-file %t.whole --check-prefix=WHOLE

// 40 tiles of eight steps on 32 blocks: one round, and eight tiles in 64 steps, of which each block takes four at least.
// CHECK: memref.global "private" @stream_k_semaphores : memref<24xi32, #gpu.address_space<global>> = dense<0>
// CHECK: nvvm.setmaxregister increase
// CHECK: [[start:%.+]] = arith.minui %{{.*}}, %c64 : index
// CHECK-NEXT: [[behind:%.+]] = arith.addi [[start]], %c4
// CHECK-NEXT: [[end:%.+]] = arith.minui [[behind]], %c64 : index
// CHECK: scf.for [[round:%.+]] = %c0 to %{{.*}} step %c1
// CHECK: [[whole:%.+]] = arith.cmpi ult, [[round]], %c1
// CHECK: arith.select [[whole]], %c8, %{{.*}}
// CHECK: scf.for [[k:%.+]] = [[first:%.+]] to %{{.*}} step %c64
// The first step of a part has no product before it, whose slot it could release.
// CHECK: [[later:%.+]] = arith.cmpi ne, [[k]], [[first]]
// CHECK-NEXT: [[releases:%.+]] = arith.andi %{{.*}}, [[later]]
// CHECK-NEXT: scf.if [[releases]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive

// TURNS: ld.acquire.gpu.global.b32
// TURNS-NEXT: nvvm.inline_ptx "fence.proxy.async;"
// TURNS: nvgpu.tma.async.store
// TURNS: } else {
// TURNS: cp.reduce.async.bulk.tensor.2d
// TURNS: nvvm.cp.async.bulk.wait_group 0
// TURNS-NOT: {read}
// TURNS-NEXT: nvvm.inline_ptx "fence.proxy.async;"
// TURNS: st.release.gpu.global.b32

// 16 clusters for 20 pairs of tiles: four pairs are shared, of two blocks with three warpgroups.
// CLUSTERS: memref.global "private" @stream_k_semaphores : memref<24xi32
// CLUSTERS: gpu.cluster_id x

// As many blocks as tiles: nothing is left to share.
// WHOLE-NOT: turns
