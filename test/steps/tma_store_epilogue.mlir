// Sums leave through boxes of 128 bytes a row, two for each warpgroup, used in turn: one is written while TMA reads the
// other. C = AB is stored, C = AB + C added; 16-bit sums are rounded and go to shared memory by stmatrix.
//
// DEFINE: %{payload} = %stepladder payload matmul --m 1024 --n 1024 --k 512
// DEFINE: %{opt} = %stepladder-opt - --pipeline wgmma --set persistent_blocks=4 --through tma_store_epilogue
// RUN: %{payload} --no-accumulate | %{opt} -o %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=BOXES
// RUN: %{payload} | %{opt} | FileCheck %s --check-prefix=ADD
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} -o %t.f16
// RUN: FileCheck %s --input-file %t.f16 --check-prefix=F16
// RUN: FileCheck %s --input-file %t.f16 --check-prefix=MATRICES
// RUN: %{payload} --acc-type f16 --c-type f16 | %{opt} --set epilogue_stages=4 --set stages=3 | FileCheck %s --check-prefix=F16-SUMS
// RUN: %{payload} --no-accumulate | %{opt} --set schedule=pingpong --set block_n=128 --set epilogue_stages=1 | FileCheck %s --check-prefix=ALTERNATING
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} --set block_n=96 | FileCheck %s --check-prefix=NARROW
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} --set block_n=160 | FileCheck %s --check-prefix=NARROW
// RUN: %{payload} --no-accumulate --c-type f16 | %{opt} --set block_n=192 --set block_k=32 | FileCheck %s --check-prefix=ODD
// RUN: %stepladder payload matmul --m 1000 --n 1000 --k 1000 --no-accumulate | %{opt} | FileCheck %s --check-prefix=RAGGED
// RUN: %stepladder payload batch_matmul --batch 3 --m 1000 --n 1000 --k 512 --no-accumulate | %{opt} | FileCheck %s --check-prefix=BATCH
// RUN: %stepladder payload batch_matmul --batch 3 --m 1000 --n 1000 --k 512 | %{opt} | FileCheck %s --check-prefix=BATCH-ADD

// CHECK: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c32] : memref<*xf32> -> <tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b
// CHECK: [[boxes:%.+]] = memref.alloc() {operand_c} : memref<2x2x64x32xf32, #gpu.address_space<workgroup>>
// CHECK-NOT: operand_c
// CHECK: nvvm.setmaxregister increase
// CHECK: [[warpgroup:%.+]] = affine.apply
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: builtin.unrealized_conversion_cast %{{.*}} : !nvgpu.warpgroup.accumulator<fragmented = vector<64x256xf32>> to vector<1x32x2x2xf32>
// CHECK: [[barrier:%.+]] = arith.addi %{{.*}}, %c1_i32 : i32
// CHECK: [[box:%.+]] = memref.subview [[boxes]][%{{.*}}, 0, 0, 0] [1, 1, 64, 32]
// CHECK-NEXT: scf.if [[one:%.+]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.barrier id = [[barrier]] number_of_threads = %c128_i32
// Four fragments of eight columns, of two rows each.
// CHECK-COUNT-8: vector.store {{.*}}, [[box]][{{.*}} {alignment = 8 : i64}
// CHECK-NOT: vector.store
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NEXT: nvvm.barrier id = [[barrier]] number_of_threads = %c128_i32
// CHECK: scf.if [[one]] {
// CHECK-NEXT: nvgpu.tma.async.store [[box]] to [[map]]
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: }
// CHECK: memref.subview [[boxes]][%{{.*}}, 1, 0, 0] [1, 1, 64, 32]
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 1 {read}
// The last boxes are waited for behind the loop over tiles.
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK: scf.if
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NOT: {{linalg|nvgpu.warpgroup.mma.store}}

// BOXES-NOT: {{linalg|warpgroup.mma.store|cp.reduce}}
// BOXES-COUNT-8: nvgpu.tma.async.store
// BOXES-NOT: {{nvgpu.tma.async.store|linalg|warpgroup.mma.store|cp.reduce}}

// ADD-NOT: {{nvgpu.tma.async.store|linalg}}
// ADD-COUNT-8: cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
// ADD-NOT: {{nvgpu.tma.async.store|cp.reduce|linalg}}

// 64 columns a box, four boxes; sixteen stores of four matrices.
// F16: -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, {{.*}}
// F16: memref.alloc() {operand_c} : memref<2x2x64x64xf16,
// F16: arith.truncf {{.*}} : vector<2xf32> to vector<2xf16>
// F16: nvvm.stmatrix {{.*}}layout = #nvvm.mma_layout<row>
// F16-COUNT-4: nvgpu.tma.async.store
// F16-NOT: nvgpu.tma.async.store
// MATRICES-NOT: vector.store
// MATRICES-COUNT-16: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {
// MATRICES-NOT: {{nvvm.stmatrix|vector.store}}

// F16-SUMS: memref.alloc() {operand_c} : memref<2x4x64x64xf16,
// F16-SUMS-NOT: arith.truncf
// F16-SUMS: nvvm.cp.async.bulk.wait_group 3 {read}
// F16-SUMS-NOT: arith.truncf
// F16-SUMS: nvvm.stmatrix
// F16-SUMS-NOT: arith.truncf
// F16-SUMS: cp.reduce.async.bulk.tensor.2d

// Each of the two stores all rows of its own tile.
// ALTERNATING: box[%c128, %c32] : memref<*xf32> -> <tensor = memref<128x32xf32,
// ALTERNATING: memref.alloc() {operand_c} : memref<2x1x128x32xf32,
// ALTERNATING: nvvm.cp.async.bulk.wait_group 0 {read}
// ALTERNATING-COUNT-4: nvgpu.tma.async.store
// ALTERNATING-NOT: nvgpu.tma.async.store

// TMA leaves out what lies beyond C: no comparison with its edges.
// RAGGED: nvgpu.warpgroup.mma
// RAGGED: nvvm.wgmma.wait.group.sync.aligned 0
// RAGGED-NOT: {{arith.cmpi [us]lt|affine.min}}
// RAGGED-COUNT-8: nvgpu.tma.async.store
// RAGGED-NOT: {{arith.cmpi [us]lt|affine.min|nvgpu.tma.async.store}}

// Rows of 192 or 320 bytes are no multiple of 128: boxes of 64 bytes, and of them three or five.
// NARROW: -> <tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b
// NARROW: memref.alloc() {operand_c} : memref<2x2x64x32xf16,
// NARROW-COUNT-3: nvgpu.tma.async.store

// Three boxes in two places: the first of a tile goes where the last of the one before it went, and waits for that.
// ODD: memref.alloc() {operand_c} : memref<2x2x64x64xf16, #gpu.address_space<workgroup>>
// ODD: nvvm.cp.async.bulk.wait_group 0 {read}
// ODD: nvgpu.tma.async.store
// ODD: nvvm.cp.async.bulk.wait_group 2 {read}
// ODD: nvgpu.tma.async.store
// ODD: nvvm.cp.async.bulk.wait_group 1 {read}
// ODD: nvgpu.tma.async.store

// A box lies in one matrix of a batch: what of it is beyond the edges of this one is not written to the next.
// BATCH: [[map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c1, %c64, %c32] : memref<*xf32> -> <tensor = memref<1x64x32xf32, 3>, swizzle = swizzle_128b
// BATCH: nvgpu.tma.async.store %{{.*}} to [[map]][%{{.*}}, %{{.*}}, %{{.*}}] : memref<1x64x32xf32,
// BATCH-ADD: nvvm.inline_ptx "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [{$r0}, {{[{]}}{$r1}, {$r2}, {$r3}}], [{$r4}];"
