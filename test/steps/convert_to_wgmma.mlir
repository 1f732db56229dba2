// Tiles of A and B arrive in a ring by TMA, counted by mbarriers, and warpgroups multiply them: no copies are left, and
// no product of linalg. What the ring is like follows types, layouts and the tile.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 1024 --n 1024 --k 512
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --set persistent_blocks=0 --set raster_group=1 --through convert_to_wgmma
// RUN: %{payload} | %{opt} -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=GONE
// RUN: %{payload} --a-layout column --b-layout column | %{opt} | FileCheck %s --check-prefix=COLUMNS
// RUN: %{payload} --a-type f8E4M3FN --b-type f8E4M3FN --b-layout column | %{opt} --set block_k=128 | FileCheck %s --check-prefix=FP8
// RUN: %{payload} --a-type f32 --b-type f32 --b-layout column | %{opt} --set block_k=16 --set stages=3 | FileCheck %s --check-prefix=TF32
// RUN: %{payload} --no-accumulate | %{opt} --set block_k=16 --set block_m=192 --set consumer_warpgroups=3 | FileCheck %s --check-prefix=NARROW
// RUN: %{payload} | %stepladder-opt - --pipeline wgmma_single_stage --through convert_to_wgmma | FileCheck %s --check-prefix=SINGLE
// RUN: %stepladder payload matmul --m 1000 --n 1000 --k 1000 | %{opt} | FileCheck %s --check-prefix=RAGGED
// RUN: %{payload} | %{opt} --set block_n=80 | FileCheck %s --check-prefix=WHOLE-BOXES
// RUN: %{payload} | %{opt} --set block_n=8 | FileCheck %s --check-prefix=SMALL-BOXES
// RUN: %{payload} --b-layout column | %{opt} --set block_n=8 | FileCheck %s --check-prefix=ALONG-K

// Boxes of 64 bytes exceed a tile of 80 columns, one of 32 bytes exceeds 8 columns; rows along k have no excess.
// WHOLE-BOXES: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c32] {{.*}}swizzle = swizzle_64b
// WHOLE-BOXES: memref.alloc() {operand_b} : memref<4x3x64x32xf16, #gpu.address_space<workgroup>>
// WHOLE-BOXES: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c28672
// WHOLE-BOXES: !nvgpu.warpgroup.descriptor<tensor = memref<64x80xf16,
// SMALL-BOXES: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c16] {{.*}}swizzle = swizzle_32b
// SMALL-BOXES: memref.alloc() {operand_b} : memref<4x1x64x16xf16, #gpu.address_space<workgroup>>
// SMALL-BOXES: !nvgpu.warpgroup.descriptor<tensor = memref<64x8xf16,
// ALONG-K: memref.alloc() {operand_b} : memref<4x1x8x64xf16, #gpu.address_space<workgroup>>

// GONE-NOT: {{linalg.copy|linalg.matmul|linalg.fill|unrealized_conversion_cast|memref.dealloc}}

// A box is 128 bytes wide: of A's tile one, of B's four.
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c128, %c64] : memref<*xf16> -> <tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, {{.*}}oob = zero
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64] : memref<*xf16> -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, {{.*}}oob = zero
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c4, %{{.*}} = %c8, %{{.*}} = %c1) threads({{.*}}) in (%{{.*}} = %c256, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<4x1x128x64xf16, #gpu.address_space<workgroup>>
// CHECK: [[B:%.+]] = memref.alloc() {operand_b} : memref<4x4x64x64xf16, #gpu.address_space<workgroup>>
// CHECK: [[thread:%.+]] = gpu.thread_id x
// CHECK: [[leader:%.+]] = arith.cmpi eq, [[thread]], %c0
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create -> {{.*}}num_barriers = 4>
// CHECK: [[empty:%.+]] = nvgpu.mbarrier.create -> {{.*}}num_barriers = 4>
// CHECK: scf.if [[leader]] {
// CHECK-NEXT: scf.for [[slot:%.+]] = %c0 to %c4 step %c1 {
// One arrival fills a slot, with the bytes; two warpgroups empty it.
// CHECK-NEXT: nvgpu.mbarrier.init [[full]]{{\[}}[[slot]]], %c1 :
// CHECK-NEXT: nvgpu.mbarrier.init [[empty]]{{\[}}[[slot]]], %c2 :
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[a_map]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[b_map]]
// CHECK: gpu.barrier
// CHECK: [[zero:%.+]] = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x256xf32>>
// CHECK: [[sums:%.+]]:3 = scf.for [[k:%.+]] = %c0 to %c512 step %c64 iter_args([[slot:%.+]] = %c0, [[parity:%.+]] = %false, [[acc:%.+]] = [[zero]])
// CHECK-NEXT: scf.if [[leader]] {
// A slot that was never filled counts as emptied: its barrier is in the phase before the first.
// CHECK-NEXT: [[before:%.+]] = arith.xori [[parity]], %true
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[empty]]{{\[}}[[slot]]], [[before]], %c10000000
// 128 x 64 + 64 x 256 elements of 2 bytes.
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]]{{\[}}[[slot]]], %c49152
// CHECK: [[tile:%.+]] = memref.subview [[A]]{{\[}}[[slot]], 0, 0, 0] [1, 1, 128, 64]
// CHECK: nvgpu.tma.async.load [[a_map]]{{\[}}[[k]], %{{.*}}], [[full]]{{\[}}[[slot]]] to [[tile]] :
// CHECK: memref.subview [[B]]{{\[}}[[slot]], 0, 0, 0] [1, 1, 64, 64]
// CHECK: nvgpu.tma.async.load [[b_map]][%{{.*}}, [[k]]], [[full]]{{\[}}[[slot]]]
// CHECK: memref.subview [[B]]{{\[}}[[slot]], 1, 0, 0] [1, 1, 64, 64]
// CHECK: nvgpu.tma.async.load [[b_map]][%{{.*}}, [[k]]], [[full]]{{\[}}[[slot]]]
// CHECK: memref.subview [[B]]{{\[}}[[slot]], 2, 0, 0] [1, 1, 64, 64]
// CHECK: nvgpu.tma.async.load [[b_map]][%{{.*}}, [[k]]], [[full]]{{\[}}[[slot]]]
// CHECK: memref.subview [[B]]{{\[}}[[slot]], 3, 0, 0] [1, 1, 64, 64]
// CHECK: nvgpu.tma.async.load [[b_map]][%{{.*}}, [[k]]], [[full]]{{\[}}[[slot]]]
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: nvgpu.mbarrier.try_wait.parity [[full]]{{\[}}[[slot]]], [[parity]], %c10000000
// CHECK: [[a:%.+]] = nvgpu.warpgroup.generate.descriptor %{{.*}}, [[a_map]] : memref<1x64x64xf16
// CHECK: [[b:%.+]] = nvgpu.warpgroup.generate.descriptor %{{.*}}, [[b_map]] : memref<4x64x64xf16
// CHECK: [[next:%.+]] = nvgpu.warpgroup.mma [[a]], [[b]], [[acc]] {transposeB, waitGroup = 0 : i64}
// CHECK: scf.if
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[slot]]]
// CHECK: [[following:%.+]] = arith.addi [[slot]], %c1
// CHECK: [[wraps:%.+]] = arith.cmpi eq, [[following]], %c4
// CHECK: [[next_slot:%.+]] = arith.select [[wraps]], %c0, [[following]]
// CHECK: [[next_parity:%.+]] = arith.select [[wraps]], %{{.*}}, [[parity]] : i1
// CHECK: scf.yield [[next_slot]], [[next_parity]], [[next]]
// C = AB + C: sums start from zero, and are added to C.
// CHECK: "tc.warpgroup_mma_store"([[sums]]#2, %{{.*}} memref<64x256xf32
// CHECK-NEXT: linalg.add

// Column-major, A's tile is stored 64 x 128 in two boxes, B's 256 x 64 in one: B runs along k. nvgpu has no such product.
// COLUMNS: box[%c64, %c64] : memref<*xf16>
// COLUMNS: box[%c256, %c64] : memref<*xf16>
// COLUMNS: memref.alloc() {operand_a} : memref<4x2x64x64xf16,
// COLUMNS: memref.alloc() {operand_b} : memref<4x1x256x64xf16,
// COLUMNS: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c49152
// COLUMNS-COUNT-3: nvgpu.tma.async.load
// COLUMNS-NOT: nvgpu.tma.async.load
// COLUMNS: [[part:%.+]] = memref.subview %{{.*}}[%{{.*}}, 0, 0] [1, 64, 64] [1, 1, 1]
// COLUMNS: nvgpu.warpgroup.generate.descriptor [[part]]
// COLUMNS: "tc.warpgroup_mma"({{.*}}) {{[<{]+}}transposeA, waitGroup = 0 : i64{{[>}]+}}

// 128 elements of a byte are 128 bytes.
// FP8: memref.alloc() {operand_a} : memref<4x1x128x128xf8E4M3FN,
// FP8: memref.alloc() {operand_b} : memref<4x1x256x128xf8E4M3FN,
// FP8: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c49152
// FP8: nvgpu.warpgroup.mma {{.*}} {waitGroup = 0 : i64} : <tensor = memref<64x128xf8E4M3FN, {{.*}}>>, <tensor = memref<128x256xf8E4M3FN,

// Rows of 64 bytes, swizzled over 64; f32 is read as tf32.
// TF32: -> <tensor = memref<128x16xf32, 3>, swizzle = swizzle_64b
// TF32: memref.alloc() {operand_a} : memref<3x1x128x16xf32,
// TF32: nvgpu.mbarrier.create -> {{.*}}num_barriers = 3>
// TF32: "tc.warpgroup_generate_descriptor"({{.*}} -> !nvgpu.warpgroup.descriptor<tensor = memref<64x16xtf32,

// 16 elements of A are 32 bytes; B's rows stay 128 bytes wide. Three warpgroups empty a slot, and C = AB is copied.
// NARROW: -> <tensor = memref<192x16xf16, 3>, swizzle = swizzle_32b
// NARROW: -> <tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b
// NARROW: threads({{.*}}) in (%{{.*}} = %c384,
// NARROW: nvgpu.mbarrier.init {{.*}}, %c3 :
// NARROW: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c14336
// NARROW: "tc.warpgroup_mma_store"
// NARROW: linalg.copy {operand_c} ins({{.*}}, #gpu.address_space<workgroup>>) outs(

// One slot: the place stays, the parity turns every step.
// SINGLE: memref.alloc() {operand_a} : memref<1x1x128x64xf16,
// SINGLE: nvgpu.mbarrier.create -> <memorySpace = #gpu.address_space<workgroup>>
// SINGLE: scf.for {{.*}} iter_args([[parity:%.+]] = %false, %{{.*}} = %{{.*}}) -> (i1,
// SINGLE-NEXT: scf.if
// SINGLE-NEXT: [[other:%.+]] = arith.xori [[parity]], %true
// SINGLE: nvgpu.mbarrier.try_wait.parity %{{.*}}[%c0], [[parity]],
// SINGLE: nvgpu.mbarrier.arrive %{{.*}}[%c0]
// SINGLE: scf.yield %{{.*}}, %{{.*}}

// What lies beyond the edges, TMA fills with zeros: no fill is left, and boxes and bytes are those of whole tiles.
// RAGGED-NOT: linalg.fill
// RAGGED: box[%c128, %c64]
// RAGGED: scf.for {{.*}} to %c1024 step %c64
// RAGGED-NOT: {{linalg.fill|affine.min}}
// RAGGED: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c49152
// RAGGED-NOT: linalg.fill
