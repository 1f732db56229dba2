// A product becomes one wgmma for each 64 rows and each 32 bytes of k, on 64-bit descriptors of its operands; sums
// become registers.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step lower_to_wgmma --split-input-file | FileCheck %s

// Rows of 64 bytes, swizzled over 64 (2 << 62); eight of them are 512 bytes (32 << 32); a box of A is 4096 bytes
// (256 << 16), one of B 512 (32 << 16).
// CHECK-LABEL: gpu.func @two_steps(
// One block a multiprocessor, or setmaxnreg does nothing.
// CHECK-SAME: nvvm.minctasm = 1 : i32
// CHECK-NOT: {{nvgpu.warpgroup|tc.warpgroup}}
// CHECK: [[zero:%.+]] = llvm.mlir.zero : !llvm.struct<(struct<(f32, f32, f32, f32)>)>
// CHECK-NEXT: [[sums:%.+]] = scf.for {{.*}} iter_args([[sum:%\w+]] = [[zero]])
// CHECK-SAME: -> (!llvm.struct<(struct<(f32, f32, f32, f32)>)>)
// The address of A's tile: where the buffer is, and where the tile is in it, in units of 16 bytes.
// CHECK-NEXT: [[base:%\w+]], [[offset:%\w+]], {{.*}} = memref.extract_strided_metadata %a_tile
// CHECK-NEXT: [[start:%.+]] = memref.extract_aligned_pointer_as_index [[base]]
// CHECK-NEXT: [[bytes:%.+]] = arith.muli [[offset]], %c2
// CHECK-NEXT: [[there:%.+]] = arith.addi [[start]], [[bytes]]
// CHECK-NEXT: [[wide:%.+]] = arith.index_cast [[there]] : index to i64
// CHECK-NEXT: [[address:%.+]] = arith.andi [[wide]], %c262143_i64
// CHECK-NEXT: [[units:%.+]] = arith.shrui [[address]], %c4_i64
// CHECK-NEXT: [[a:%.+]] = arith.ori [[units]], %c-9223371899399045120_i64
// CHECK: memref.extract_strided_metadata %b_tile
// CHECK: [[b:%.+]] = arith.ori %{{.*}}, %c-9223371899413725184_i64
// CHECK-NEXT: nvvm.wgmma.fence.aligned
// CHECK-NEXT: [[before:%.+]] = llvm.extractvalue [[sum]][0]
// CHECK-NEXT: [[half:%.+]] = nvvm.wgmma.mma_async [[a]], [[b]], [[before]], <m = 64, n = 8, k = 16>, D[<f32>, <one>],
// CHECK-SAME: A[<f16>, <one>, <row>], B[<f16>, <one>, <col>]
// Both run along k: the next step is 32 bytes further.
// CHECK-NEXT: [[a1:%.+]] = arith.addi [[a]], %c2_i64
// CHECK-NEXT: [[b1:%.+]] = arith.addi [[b]], %c2_i64
// CHECK-NEXT: [[all:%.+]] = nvvm.wgmma.mma_async [[a1]], [[b1]], [[half]],
// CHECK-NEXT: [[next:%.+]] = llvm.insertvalue [[all]], %{{.*}}[0]
// CHECK-NEXT: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: scf.yield [[next]]
// CHECK-NEXT: }
// The lower two sums of a thread, and one of the upper.
// CHECK-NEXT: [[left:%.+]] = llvm.extractvalue [[sums]][0, 2]
// CHECK-NEXT: [[right:%.+]] = llvm.extractvalue [[sums]][0, 3]
// CHECK-NEXT: [[pair:%.+]] = vector.from_elements [[left]], [[right]] : vector<2xf32>
// CHECK-NEXT: vector.store [[pair]], %C
// CHECK-NEXT: [[one:%.+]] = llvm.extractvalue [[sums]][0, 1]
// CHECK-NEXT: memref.store [[one]], %C
// CHECK-NOT: {{nvgpu.warpgroup|tc.warpgroup|unrealized_conversion_cast}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a_view = strided<[2048, 32, 1], offset: ?>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x32xf16, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
gpu.module @kernels {
  gpu.func @two_steps(%a_tile: memref<1x64x32xf16, #a_view, #space>, %a_map: !a_map,
                      %b_tile: memref<1x8x32xf16, #space>, %b_map: !b_map, %C: memref<64x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
      %a = "tc.warpgroup_generate_descriptor"(%a_tile, %a_map) : (memref<1x64x32xf16, #a_view, #space>, !a_map) -> !a
      %b = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<1x8x32xf16, #space>, !b_map) -> !b
      %next = nvgpu.warpgroup.mma %a, %b, %sum {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
      scf.yield %next : !sums
    }
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x1x2x2xf32>
    %pair = vector.extract %held[0, 0, 1] : vector<2xf32> from vector<1x1x2x2xf32>
    vector.store %pair, %C[%c0, %c0] : memref<64x8xf32>, vector<2xf32>
    %one = vector.extract %held[0, 0, 0, 1] : f32 from vector<1x1x2x2xf32>
    memref.store %one, %C[%c1, %c1] : memref<64x8xf32>
    gpu.return
  }
}

// -----

// A runs along m, B along n, which the instruction transposes: a step of k is 16 rows further, of 128 and of 32 bytes.
// 128 rows of sums are two times 64, the second in A's second box. Registers hold pairs of f16. The sums start from zero:
// the first instruction of each writes registers without reading them.
// CHECK-LABEL: gpu.func @along_m_and_n(
// CHECK-NOT: {{nvgpu.warpgroup|tc.warpgroup}}
// CHECK: [[a:%.+]] = arith.ori %{{.*}}, %c4611686293322072064_i64
// CHECK: [[b:%.+]] = arith.ori %{{.*}}, %c-4611685949703716864_i64
// CHECK-NEXT: nvvm.wgmma.fence.aligned
// CHECK-NEXT: [[upper:%.+]] = nvvm.wgmma.mma_async [[a]], [[b]], %{{.*}}, <m = 64, n = 32, k = 16>, D[<f16>, <zero>],
// CHECK-SAME: A[<f16>, <one>, <col>], B[<f16>, <one>, <row>] : !llvm.struct<(i32, i32, i32, i32, i32, i32, i32, i32)>
// CHECK-NEXT: [[a1:%.+]] = arith.addi [[a]], %c128_i64
// CHECK-NEXT: [[b1:%.+]] = arith.addi [[b]], %c32_i64
// CHECK-NEXT: nvvm.wgmma.mma_async [[a1]], [[b1]], [[upper]], <m = 64, n = 32, k = 16>, D[<f16>, <one>],
// CHECK-NEXT: [[a2:%.+]] = arith.addi [[a]], %c256_i64
// CHECK-NEXT: [[lower:%.+]] = nvvm.wgmma.mma_async [[a2]], [[b]],
// CHECK-NEXT: [[a3:%.+]] = arith.addi [[a]], %c384_i64
// CHECK: [[sums:%.+]] = nvvm.wgmma.mma_async [[a3]], [[b1]], [[lower]],
// CHECK-NEXT: nvvm.wgmma.commit.group.sync.aligned
// Without another wish, one product may still run.
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: [[register:%.+]] = llvm.extractvalue [[sums]][7]
// CHECK-NEXT: [[pair:%.+]] = llvm.bitcast [[register]] : i32 to vector<2xf16>
// CHECK-NEXT: vector.store [[pair]], %C
// CHECK-NOT: {{nvgpu.warpgroup|tc.warpgroup|unrealized_conversion_cast}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<32x16xf16, 3>, swizzle = swizzle_32b, l2promo = none, oob = zero,
                                     interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<128x32xf16, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<32x32xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x32xf16>>
gpu.module @kernels {
  gpu.func @along_m_and_n(%a_tile: memref<2x32x64xf16, #space>, %a_map: !a_map, %b_tile: memref<2x32x16xf16, #space>,
                          %b_map: !b_map, %C: memref<64x8xf16>) kernel {
    %c0 = arith.constant 0 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %a = nvgpu.warpgroup.generate.descriptor %a_tile, %a_map : memref<2x32x64xf16, #space>, !a_map -> !a
    %b = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<2x32x16xf16, #space>, !b_map) -> !b
    %d = nvgpu.warpgroup.mma %a, %b, %zero {transposeA, transposeB} : !a, !b, !sums -> !sums
    nvvm.wgmma.wait.group.sync.aligned 0
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<2x4x2x2xf16>
    %pair = vector.extract %held[1, 3, 1] : vector<2xf16> from vector<2x4x2x2xf16>
    vector.store %pair, %C[%c0, %c0] : memref<64x8xf16>, vector<2xf16>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @fp8(
// CHECK-COUNT-2: nvvm.wgmma.mma_async {{.*}} n = 8, k = 32>{{.*}} A[<e5m2>, <one>, <row>], B[<e4m3>, <one>, <col>]
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf8E5M2, 3>, swizzle = swizzle_64b, l2promo = none,
                                     oob = zero, interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf8E5M2, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<64x8xf8E4M3FN, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
gpu.module @kernels {
  gpu.func @fp8(%a_tile: memref<1x64x64xf8E5M2, #space>, %map: !a_map, %b_tile: memref<1x8x64xf8E4M3FN, #space>,
                %C: memref<64x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %a = "tc.warpgroup_generate_descriptor"(%a_tile, %map) : (memref<1x64x64xf8E5M2, #space>, !a_map) -> !a
    %b = "tc.warpgroup_generate_descriptor"(%b_tile, %map) : (memref<1x8x64xf8E4M3FN, #space>, !a_map) -> !b
    %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x1x2x2xf32>
    %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x1x2x2xf32>
    vector.store %pair, %C[%c0, %c0] : memref<64x8xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Rows of 32 bytes: the next step is in the next box, 128 and 8 rows further. The lower 64 rows are 64 rows further.
// CHECK-LABEL: gpu.func @tf32(
// CHECK: [[a:%.+]] = arith.ori %{{.*}}, %c-4611685949691133952_i64
// CHECK: [[b:%.+]] = arith.ori %{{.*}}, %c-4611685949706862592_i64
// CHECK: [[upper:%.+]] = nvvm.wgmma.mma_async [[a]], [[b]], %{{.*}}, <m = 64, n = 8, k = 8>, D[<f32>, <zero>],
// CHECK-SAME: A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>]
// CHECK-NEXT: [[a1:%.+]] = arith.addi [[a]], %c256_i64
// CHECK-NEXT: [[b1:%.+]] = arith.addi [[b]], %c16_i64
// CHECK-NEXT: nvvm.wgmma.mma_async [[a1]], [[b1]], [[upper]],
// CHECK-NEXT: [[a2:%.+]] = arith.addi [[a]], %c128_i64
// CHECK-NEXT: [[lower:%.+]] = nvvm.wgmma.mma_async [[a2]], [[b]],
// CHECK-NEXT: [[a3:%.+]] = arith.addi [[a]], %c384_i64
// CHECK-NEXT: nvvm.wgmma.mma_async [[a3]], [[b1]], [[lower]],
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<128x8xf32, 3>, swizzle = swizzle_32b, l2promo = none, oob = zero,
                                   interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<128x16xtf32, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<16x8xtf32, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x8xf32>>
gpu.module @kernels {
  gpu.func @tf32(%a_tile: memref<2x128x8xf32, #space>, %map: !map, %b_tile: memref<2x8x8xf32, #space>,
                 %C: memref<64x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %a = "tc.warpgroup_generate_descriptor"(%a_tile, %map) : (memref<2x128x8xf32, #space>, !map) -> !a
    %b = "tc.warpgroup_generate_descriptor"(%b_tile, %map) : (memref<2x8x8xf32, #space>, !map) -> !b
    %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !a, !b, !sums -> !sums
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<2x1x2x2xf32>
    %pair = vector.extract %held[1, 0, 0] : vector<2xf32> from vector<2x1x2x2xf32>
    vector.store %pair, %C[%c0, %c0] : memref<64x8xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Operands in two parts: the small products come first, from registers that nothing was in; the sums of the step are
// waited for, and added.
// CHECK-LABEL: gpu.func @split(
// CHECK: [[none:%.+]] = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
// CHECK: [[a1:%.+]] = arith.ori
// CHECK: [[a2:%.+]] = arith.ori
// CHECK: [[b1:%.+]] = arith.ori
// CHECK: [[b2:%.+]] = arith.ori
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: [[s0:%.+]] = nvvm.wgmma.mma_async [[a2]], [[b1]], [[none]], <m = 64, n = 8, k = 8>, D[<f32>, <zero>],
// CHECK: [[s1:%.+]] = nvvm.wgmma.mma_async [[a1]], [[b2]], [[s0]], <m = 64, n = 8, k = 8>, D[<f32>, <one>],
// CHECK: [[s2:%.+]] = nvvm.wgmma.mma_async [[a1]], [[b1]], [[s1]], <m = 64, n = 8, k = 8>, D[<f32>, <one>],
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: [[sum0:%.+]] = llvm.extractvalue [[s2]][0]
// CHECK-NEXT: arith.addf [[sum0]], %{{.*}} : f32
// CHECK-NEXT: [[sum1:%.+]] = llvm.extractvalue [[s2]][1]
// CHECK-NEXT: arith.addf [[sum1]], %{{.*}} : f32
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x8xf32, 3>, swizzle = swizzle_32b, l2promo = none, oob = zero,
                                   interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x8xtf32, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<8x8xtf32, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
!a_tile = memref<1x64x8xf32, #space>
!b_tile = memref<1x8x8xf32, #space>
gpu.module @kernels {
  gpu.func @split(%a1_tile: !a_tile, %a2_tile: !a_tile, %map: !map, %b1_tile: !b_tile, %b2_tile: !b_tile,
                  %C: memref<64x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %a1 = "tc.warpgroup_generate_descriptor"(%a1_tile, %map) : (!a_tile, !map) -> !a
    %a2 = "tc.warpgroup_generate_descriptor"(%a2_tile, %map) : (!a_tile, !map) -> !a
    %b1 = "tc.warpgroup_generate_descriptor"(%b1_tile, %map) : (!b_tile, !map) -> !b
    %b2 = "tc.warpgroup_generate_descriptor"(%b2_tile, %map) : (!b_tile, !map) -> !b
    %d = "tc.warpgroup_mma_3xtf32"(%a1, %b1, %zero, %a2, %b2) : (!a, !b, !sums, !a, !b) -> !sums
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x1x2x2xf32>
    %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x1x2x2xf32>
    vector.store %pair, %C[%c0, %c0] : memref<64x8xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// Both parts of A in registers: their ops stand in front of the fence, and the first product replaces its registers.
// CHECK-LABEL: gpu.func @split_a_into_tf32(
// CHECK: [[zero:%.+]] = llvm.mlir.zero
// CHECK-COUNT-8: llvm.bitcast %{{.+}} : f32 to i32
// CHECK-NEXT: nvvm.wgmma.fence.aligned
// CHECK: [[p0:%.+]] = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, 0, 1, 1;", "=f,=f,=f,=f,r,r,r,r,l" [[small:%.+]], %{{.+}}, %{{.+}}, %{{.+}}, [[b1:%.+]] :
// CHECK: [[s0:%.+]] = llvm.extractvalue [[p0]][0]
// CHECK: [[p1:%.+]] = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, 1, 1, 1;", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l" [[s0]], %{{.+}}, %{{.+}}, %{{.+}}, [[large:%.+]], %{{.+}}, %{{.+}}, %{{.+}}, [[b2:%.+]] :
// CHECK: [[p2:%.+]] = llvm.inline_asm {{.*}} %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, [[large]], %{{.+}}, %{{.+}}, %{{.+}}, [[b1]] :
// CHECK-NOT: llvm.inline_asm
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: llvm.extractvalue [[p2]][0]
// CHECK: arith.addf
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x8xf32, 3>, swizzle = swizzle_32b, l2promo = none, oob = zero,
                                   interleave = none>
!a = vector<1x1x4xf32>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<8x8xtf32, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
!b_tile = memref<1x8x8xf32, #space>
gpu.module @kernels {
  gpu.func @split_a_into_tf32(%a1: !a, %a2: !a, %map: !map, %b1_tile: !b_tile, %b2_tile: !b_tile, %C: memref<64x8xf32>)
      kernel {
    %c0 = arith.constant 0 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %b1 = "tc.warpgroup_generate_descriptor"(%b1_tile, %map) : (!b_tile, !map) -> !b
    %b2 = "tc.warpgroup_generate_descriptor"(%b2_tile, %map) : (!b_tile, !map) -> !b
    %d = "tc.warpgroup_mma_3xtf32_registers"(%a1, %b1, %zero, %a2, %b2) : (!a, !b, !sums, !a, !b) -> !sums
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x1x2x2xf32>
    %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x1x2x2xf32>
    vector.store %pair, %C[%c0, %c0] : memref<64x8xf32>, vector<2xf32>
    gpu.return
  }
}

// -----

// A kernel without products gets the bound on its registers, and stays.
// CHECK-LABEL: gpu.func @no_products(
// CHECK-SAME: nvvm.minctasm = 1 : i32
// CHECK-NOT: {{llvm|nvvm.wgmma}}
gpu.module @kernels {
  gpu.func @no_products(%x: f32, %C: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    memref.store %x, %C[%c0] : memref<64xf32>
    gpu.return
  }
}

// -----

// A in registers: four of 32 bits for each 64 rows and 16 steps of k, and the second 16 rows of B's tile.
// CHECK-LABEL: gpu.func @registers(
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: [[r0:%.+]] = llvm.bitcast %{{.*}} : vector<2xf16> to i32
// CHECK: [[r1:%.+]] = llvm.bitcast
// CHECK: [[r2:%.+]] = llvm.bitcast
// CHECK: [[r3:%.+]] = llvm.bitcast
// CHECK: [[b:%.+]] = arith.addi %{{.*}}, %c2_i64
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att
// CHECK-SAME: "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, 1, 1, 1, 0;",
// CHECK-SAME: "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l" %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, [[r0]], [[r1]], [[r2]], [[r3]], [[b]]
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NOT: nvvm.wgmma.wait
#space = #gpu.address_space<workgroup>
#b_view = strided<[256, 32, 1], offset: ?>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
gpu.module @kernels {
  gpu.func @registers(%a: vector<1x4x2xf16>, %b_tile: memref<1x8x32xf16, #b_view, #space>, %b_map: !b_map,
                      %C: memref<4xvector<2xf32>>) kernel {
    %c0 = arith.constant 0 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %b = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<1x8x32xf16, #b_view, #space>, !b_map)
      -> !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>
    %sums = "tc.warpgroup_mma_registers"(%a, %b, %zero) {step = 1 : i64}
      : (vector<1x4x2xf16>, !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>, !sums) -> !sums
    %registers = builtin.unrealized_conversion_cast %sums : !sums to vector<1x1x2x2xf32>
    %pair = vector.extract %registers[0, 0, 1] : vector<2xf32> from vector<1x1x2x2xf32>
    memref.store %pair, %C[%c0] : memref<4xvector<2xf32>>
    gpu.return
  }
}

// -----

// An accumulator of elements that a thread has computed, in their order, and a tile that threads have written.
// CHECK-LABEL: gpu.func @elements(
// CHECK-NOT: {{"tc\.|unrealized}}
// CHECK: llvm.inline_asm {{.*}} "wgmma.mma_async{{.*}}", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l" %w, %x, %y, %z,
// CHECK-NOT: {{"tc\.|unrealized}}
#space = #gpu.address_space<workgroup>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
gpu.module @kernels {
  gpu.func @elements(%a: vector<1x4x2xf16>, %tile: memref<1x8x32xf16, #space>, %w: f32, %x: f32, %y: f32, %z: f32,
                     %C: memref<4xvector<2xf32>>) kernel {
    %c0 = arith.constant 0 : index
    %elements = vector.from_elements %w, %x, %y, %z : vector<1x1x2x2xf32>
    %begin = builtin.unrealized_conversion_cast %elements : vector<1x1x2x2xf32> to !sums
    %b = "tc.warpgroup_describe_tile"(%tile) {swizzle = 64 : i64} : (memref<1x8x32xf16, #space>)
      -> !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>
    %sums = "tc.warpgroup_mma_registers"(%a, %b, %begin) {step = 1 : i64}
      : (vector<1x4x2xf16>, !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>, !sums) -> !sums
    %registers = builtin.unrealized_conversion_cast %sums : !sums to vector<1x1x2x2xf32>
    %pair = vector.extract %registers[0, 0, 1] : vector<2xf32> from vector<1x1x2x2xf32>
    memref.store %pair, %C[%c0] : memref<4xvector<2xf32>>
    gpu.return
  }
}

// -----

// Additions of accumulators, and of slices of them, are additions of registers where they were.
// CHECK-LABEL: gpu.func @additions(
// CHECK-NOT: {{vector|unrealized_conversion_cast}}
// CHECK: scf.for {{.*}} iter_args([[sum:%\w+]] = %{{\w+}}) -> (!llvm.struct<(struct<(f32, f32, f32, f32, f32, f32, f32, f32)>)>)
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-COUNT-4: arith.addf
// CHECK-NOT: arith.addf
// CHECK: nvvm.wgmma.mma_async {{.*}} D[<f32>, <zero>]
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: [[before:%.+]] = llvm.extractvalue [[sum]][0, 7]
// CHECK: [[step:%.+]] = llvm.extractvalue %{{.*}}[3]
// CHECK: [[total:%.+]] = arith.addf [[before]], [[step]] : f32
// CHECK: llvm.insertvalue [[total]], %{{.*}}[0, 7]
// CHECK-NEXT: scf.yield
#space = #gpu.address_space<workgroup>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf8E4M3FN, 3>, swizzle = swizzle_32b, l2promo = none,
                                     oob = zero, interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf8E4M3FN, 3>, swizzle = swizzle_32b, l2promo = none,
                                     oob = zero, interleave = none>
!a = !nvgpu.warpgroup.descriptor<tensor = memref<64x32xf8E4M3FN, #space>>
!b = !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf8E4M3FN, #space>>
!half = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x16xf32>>
gpu.module @kernels {
  gpu.func @additions(%a_tile: memref<1x64x32xf8E4M3FN, #space>, %a_map: !a_map,
                      %b_tile: memref<1x8x32xf8E4M3FN, #space>, %b_map: !b_map, %C: memref<64x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (!sums) {
      %a = "tc.warpgroup_generate_descriptor"(%a_tile, %a_map) : (memref<1x64x32xf8E4M3FN, #space>, !a_map) -> !a
      %b = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<1x8x32xf8E4M3FN, #space>, !b_map) -> !b
      %none = nvgpu.warpgroup.mma.init.accumulator -> !half
      %before = builtin.unrealized_conversion_cast %sum : !sums to vector<1x2x2x2xf32>
      %left = nvgpu.warpgroup.mma %a, %b, %none {waitGroup = 0 : i64} : !a, !b, !half -> !half
      %left_step = builtin.unrealized_conversion_cast %left : !half to vector<1x1x2x2xf32>
      %left_sums = vector.extract_strided_slice %before {offsets = [0, 0, 0, 0], sizes = [1, 1, 2, 2],
          strides = [1, 1, 1, 1]} : vector<1x2x2x2xf32> to vector<1x1x2x2xf32>
      %left_total = arith.addf %left_sums, %left_step : vector<1x1x2x2xf32>
      %part = vector.insert_strided_slice %left_total, %before {offsets = [0, 0, 0, 0], strides = [1, 1, 1, 1]}
          : vector<1x1x2x2xf32> into vector<1x2x2x2xf32>
      %right = nvgpu.warpgroup.mma %a, %b, %none {waitGroup = 0 : i64} : !a, !b, !half -> !half
      %right_step = builtin.unrealized_conversion_cast %right : !half to vector<1x1x2x2xf32>
      %right_sums = vector.extract_strided_slice %part {offsets = [0, 1, 0, 0], sizes = [1, 1, 2, 2],
          strides = [1, 1, 1, 1]} : vector<1x2x2x2xf32> to vector<1x1x2x2xf32>
      %right_total = arith.addf %right_sums, %right_step : vector<1x1x2x2xf32>
      %whole = vector.insert_strided_slice %right_total, %part {offsets = [0, 1, 0, 0], strides = [1, 1, 1, 1]}
          : vector<1x1x2x2xf32> into vector<1x2x2x2xf32>
      %next = builtin.unrealized_conversion_cast %whole : vector<1x2x2x2xf32> to !sums
      scf.yield %next : !sums
    }
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x2x2x2xf32>
    %one = vector.extract %held[0, 0, 0, 1] : f32 from vector<1x2x2x2xf32>
    memref.store %one, %C[%c1, %c1] : memref<64x16xf32>
    gpu.return
  }
}
