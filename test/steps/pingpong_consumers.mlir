// Two consumers take tiles in turn: each every second one, at a place in the ring behind the other's. Named barriers 4
// and 5 hand the tensor cores over, in front of the loop over k and behind it; the second lets the first begin.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma --set schedule=pingpong --set block_m=64 --set persistent_blocks=4
// RUN: %stepladder payload matmul --m 512 --n 1024 --k 384 -o %t.mlir
// RUN: %{opt} --through specialize_warps | FileCheck %s --check-prefix=BEFORE
// RUN: %{opt} --through pingpong_consumers | FileCheck %s
// RUN: %{opt} --through pingpong_consumers | FileCheck %s --check-prefix=SUMS
// RUN: %{opt} --through pingpong_consumers --set block_m=128 --set block_n=128 --set stages=3 | FileCheck %s --check-prefix=LARGER
// RUN: %stepladder payload matmul --m 512 --n 1024 --k 64 | %stepladder-opt - --pipeline wgmma --set schedule=pingpong --set block_m=64 --set persistent_blocks=4 --through pingpong_consumers | FileCheck %s --check-prefix=STEP

// BEFORE: threads({{.*}}) in (%{{.*}} = %c256,
// BEFORE-NOT: nvvm.barrier

// CHECK-DAG: #[[begun:.+]] = affine_map<()[s0] -> ({{.*}}floordiv 128){{.*}}
// CHECK: threads({{.*}}) in (%{{.*}} = %c384,
// One warpgroup reads a slot, whichever it is.
// CHECK: nvgpu.mbarrier.init {{.*}}, %c1 :
// CHECK: nvgpu.mbarrier.init {{.*}}, %c1 :
// CHECK: arith.cmpi eq, %{{.*}}, %c2
// CHECK: nvvm.setmaxregister decrease
// CHECK: arith.cmpi eq, %thread_id_x, %c256
// The producer loads all tiles, in order.
// CHECK: scf.for {{.*}} = [[block:%.+]] to %c32 step %c4 iter_args({{.*}} = %c0, {{.*}} = %false)
// CHECK: } else {
// CHECK: nvvm.setmaxregister increase
// CHECK-NOT: nvvm.barrier
// CHECK: [[first:%.+]] = arith.addi %{{.*}}, %{{.*}}
// CHECK: [[own:%.+]] = arith.addi %{{.*}}, %c4_i32 : i32
// CHECK-NEXT: [[other:%.+]] = arith.subi %c5_i32, %{{.*}} : i32
// CHECK: [[second:%.+]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK: scf.if [[second]] {
// CHECK-NEXT: nvvm.barrier.arrive id = [[other]] number_of_threads = %c256_i32
// CHECK: scf.for {{.*}} = [[first]] to %c32 step %c8 iter_args([[slot:%.+]] = %{{.*}}, [[parity:%.+]] = %{{.*}})
// CHECK: nvvm.barrier id = [[own]] number_of_threads = %c256_i32
// CHECK-NEXT: [[steps:%.+]]:4 = scf.for {{.*}} = %c0 to %c384 step %c64 iter_args({{.*}} = [[slot]], {{.*}} = [[parity]],
// CHECK: nvgpu.warpgroup.mma
// CHECK: nvvm.barrier.arrive id = [[other]] number_of_threads = %c256_i32
// CHECK: "tc.warpgroup_mma_store"([[steps]]#2
// Six steps of the other's tile, in a ring of four.
// CHECK: arith.addi [[steps]]#0, %c6
// CHECK: arith.xori [[steps]]#1
// CHECK-NOT: nvvm.barrier
// CHECK: gpu.terminator

// LARGER: memref<3x1x128x64xf16
// LARGER: scf.for {{.*}} to %c32 step %c8
// LARGER: <fragmented = vector<128x128xf32>>

// No loop over k: the turn lasts from the wait for the tiles to the product.
// STEP: nvvm.setmaxregister increase
// STEP: nvvm.barrier id =
// STEP-NEXT: nvgpu.mbarrier.try_wait.parity
// STEP: nvgpu.warpgroup.mma %
// STEP-NEXT: nvvm.barrier.arrive id =

// Each has a tile of sums of its own.
// SUMS: [[both:%.+]] = memref.alloc() {operand_c} : memref<2x64x256xf32, #gpu.address_space<workgroup>>
// SUMS: [[own:%.+]] = memref.subview [[both]][%{{.*}}, 0, 0] [1, 64, 256] [1, 1, 1]
// SUMS: "tc.warpgroup_mma_store"(%{{.*}}, [[own]]
// SUMS: linalg.add ins([[own]]
