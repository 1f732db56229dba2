// One warpgroup more, whose first thread issues loads; the others multiply. The roles share nothing but the barriers: no
// consumer issues a load, the producer waits for no tile, multiplies nothing and writes nothing.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma --set persistent_blocks=4 --through specialize_warps
// RUN: %stepladder payload matmul --m 512 --n 1024 --k 512 -o %t.mlir
// RUN: %{opt} -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=THREADS
// RUN: FileCheck %s --input-file %t --check-prefix=PRODUCER
// RUN: FileCheck %s --input-file %t --check-prefix=CONSUMERS
// RUN: %{opt} --without specialize_warps | FileCheck %s --check-prefix=WITHOUT
// RUN: %{opt} --set consumer_warpgroups=3 --set block_m=192 --set block_n=128 | FileCheck %s --check-prefix=THREE
// RUN: %{opt} --set consumer_warpgroups=1 --set block_m=64 | FileCheck %s --check-prefix=ONE
// RUN: %{opt} --set block_m=256 --set block_n=192 --set stages=2 | FileCheck %s --check-prefix=MANY-SUMS
// RUN: %stepladder payload matmul --m 256 --n 512 --k 64 | %stepladder-opt - --pipeline wgmma --set persistent_blocks=0 --through specialize_warps | FileCheck %s --check-prefix=ONE-STEP

// THREADS: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, {{.*}}) threads({{.*}}) in (%{{.*}} = %c384, %{{.*}} = %c1, %{{.*}} = %c1)

// The number of a warpgroup is the same for a warp, and ptxas is to know it.
// CHECK: [[number:%.+]] = arith.index_cast %{{.*}} : index to i32
// CHECK: [[uniform:%.+]], %{{.*}} = gpu.shuffle idx [[number]], %c0_i32, %c32_i32
// CHECK: [[warpgroup:%.+]] = arith.index_cast [[uniform]] : i32 to index
// CHECK: [[loads:%.+]] = arith.cmpi eq, [[warpgroup]], %c2
// CHECK-NEXT: scf.if [[loads]] {
// CHECK-NEXT: nvvm.setmaxregister decrease 40
// CHECK-NEXT: [[one:%.+]] = arith.cmpi eq, %thread_id_x, %c256
// CHECK-NEXT: scf.if [[one]] {
// CHECK: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 232
// CHECK-NOT: {{setmaxregister|} else}}
// CHECK: gpu.terminator

// PRODUCER: nvvm.setmaxregister decrease
// The place in the ring goes on from tile to tile, in both roles.
// PRODUCER: [[tiles:%.+]]:2 = scf.for {{.*}} to %c16 step %c4 iter_args([[slot:%.+]] = %c0, [[parity:%.+]] = %false)
// PRODUCER: [[steps:%.+]]:2 = scf.for {{.*}} to %c512 step %c64 iter_args([[own:%.+]] = [[slot]], [[own_parity:%.+]] = [[parity]])
// PRODUCER-NEXT: [[before:%.+]] = arith.xori [[own_parity]], %true
// PRODUCER-NEXT: nvgpu.mbarrier.try_wait.parity %{{.*}}{{\[}}[[own]]], [[before]]
// PRODUCER-NEXT: nvgpu.mbarrier.arrive.expect_tx %{{.*}}{{\[}}[[own]]], %c49152
// PRODUCER-NOT: {{try_wait|expect_tx|nvgpu.mbarrier.arrive |warpgroup.mma|warpgroup.generate|wgmma|linalg}}
// PRODUCER-COUNT-5: nvgpu.tma.async.load
// PRODUCER-NOT: {{try_wait|expect_tx|nvgpu.mbarrier.arrive |warpgroup.mma|warpgroup.generate|wgmma|linalg}}
// PRODUCER: scf.yield [[steps]]#0, [[steps]]#1
// PRODUCER: } else {

// CONSUMERS: nvvm.setmaxregister increase
// CONSUMERS-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CONSUMERS: scf.for {{.*}} to %c16 step %c4 iter_args([[slot:%.+]] = %c0, [[parity:%.+]] = %false)
// CONSUMERS: scf.for {{.*}} to %c512 step %c64 iter_args([[own:%.+]] = [[slot]], [[own_parity:%.+]] = [[parity]],
// CONSUMERS: nvgpu.mbarrier.try_wait.parity %{{.*}}{{\[}}[[own]]], [[own_parity]]
// CONSUMERS-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CONSUMERS: nvgpu.warpgroup.mma
// CONSUMERS-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CONSUMERS: nvgpu.mbarrier.arrive
// CONSUMERS: "tc.warpgroup_mma_store"
// CONSUMERS-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CONSUMERS: gpu.terminator

// WITHOUT-NOT: {{setmaxregister|gpu.shuffle|} else}}
// WITHOUT: threads({{.*}}) in (%{{.*}} = %c256,
// WITHOUT-NOT: {{setmaxregister|gpu.shuffle|} else}}
// WITHOUT: nvgpu.tma.async.load
// WITHOUT-NOT: {{setmaxregister|gpu.shuffle|} else}}
// WITHOUT: gpu.terminator

// 4 x 128 threads: 32 + 3 x 160 registers for one in each warpgroup are 512 a row of four, all there are.
// THREE: threads({{.*}}) in (%{{.*}} = %c512,
// THREE: nvgpu.mbarrier.init {{.*}}, %c3 :
// THREE: arith.cmpi eq, %{{.*}}, %c3
// THREE: nvvm.setmaxregister decrease 32
// THREE: nvvm.setmaxregister increase 160

// ONE: threads({{.*}}) in (%{{.*}} = %c256,
// ONE: nvgpu.mbarrier.init {{.*}}, %c1 :
// ONE: nvgpu.mbarrier.init {{.*}}, %c1 :
// ONE: nvvm.setmaxregister decrease 40

// 192 sums a thread.
// MANY-SUMS: nvvm.setmaxregister decrease 24
// MANY-SUMS: nvvm.setmaxregister increase 240

// A block of one tile with one k step has no loop, and its producer's loads stay.
// ONE-STEP: nvvm.setmaxregister decrease
// ONE-STEP: nvgpu.mbarrier.arrive.expect_tx
// ONE-STEP-COUNT-5: nvgpu.tma.async.load
// ONE-STEP: } else {
// ONE-STEP: nvvm.setmaxregister increase
// ONE-STEP-NOT: nvgpu.tma.async.load
// ONE-STEP: gpu.terminator
