// Tiles of A and B arrive in stages of a pipeline by TMA, counted by mbarriers, and warpgroups multiply them: no copies
// of A and B are left, and no product of linalg. What a stage is like follows types, layouts and the tile.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step convert_to_wgmma --set allow_tf32=true --split-input-file
// RUN: %{opt} %s --set stages=3 --set block_n=128 --verify-diagnostics | FileCheck %s
// RUN: sed '/^\/\/ Of three stages/Q' %s | %{opt} - --set stages=1 | FileCheck %s --check-prefix=ONE

// Two warpgroups of 64 rows. A box is 128 bytes wide: of A's tile one, of B's two.
// CHECK-DAG: #[[to_right:.+]] = affine_map<()[s0] -> (s0 * 128 + 64)>
// CHECK-LABEL: func.func @accumulate(
// CHECK: [[any:%.+]] = memref.cast %A : memref<256x192xf16> to memref<*xf16>
// CHECK-NEXT: [[a_map:%.+]] = nvgpu.tma.create.descriptor [[any]] box[%c128, %c64] : memref<*xf16>
// CHECK-SAME: -> <tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, {{.*}}oob = zero
// CHECK-NEXT: [[any:%.+]] = memref.cast %B : memref<192x256xf16> to memref<*xf16>
// CHECK-NEXT: [[b_map:%.+]] = nvgpu.tma.create.descriptor [[any]] box[%c64, %c64] : memref<*xf16>
// CHECK-SAME: -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, {{.*}}oob = zero
// CHECK: gpu.launch {{.*}} threads({{[^)]*}}) in (%{{[^)]*}} = %c256, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-NEXT: [[A:%.+]] = memref.alloc() {operand_a} : memref<3x1x128x64xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT: [[B:%.+]] = memref.alloc() {operand_b} : memref<3x2x64x64xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT: [[thread:%.+]] = gpu.thread_id x
// CHECK-NEXT: [[leader:%.+]] = arith.cmpi eq, [[thread]], %c0
// CHECK-NEXT: [[full:%.+]] = nvgpu.mbarrier.create -> {{.*}}num_barriers = 3>
// CHECK-NEXT: [[empty:%.+]] = nvgpu.mbarrier.create -> {{.*}}num_barriers = 3>
// CHECK-NEXT: scf.if [[leader]] {
// CHECK-NEXT: scf.for [[stage:%.+]] = %c0 to %c3 step %c1 {
// One arrival fills a stage, with the bytes; two warpgroups empty it.
// CHECK-NEXT: nvgpu.mbarrier.init [[full]]{{\[}}[[stage]]], %c1 :
// CHECK-NEXT: nvgpu.mbarrier.init [[empty]]{{\[}}[[stage]]], %c2 :
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[a_map]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[b_map]]
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier
// CHECK: [[sums:%.+]] = memref.alloc() {operand_c}
// The state of the pipeline goes on from tile to tile.
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args([[at:%\w+]] = %c0, [[with:%\w+]] = %false) -> (index, i1) {
// CHECK-NOT: linalg
// CHECK: [[zero:%.+]] = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x128xf32>>
// CHECK-NEXT: [[steps:%.+]]:3 = scf.for [[k:%.+]] = %c0 to %c192 step %c64
// CHECK-SAME: iter_args([[stage:%\w+]] = [[at]], [[parity:%\w+]] = [[with]], [[sum:%\w+]] = [[zero]])
// CHECK-NEXT: scf.if [[leader]] {
// A stage that was never filled counts as emptied: its barrier is in the phase before the first.
// CHECK-NEXT: [[before:%.+]] = arith.xori [[parity]], %true
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[empty]]{{\[}}[[stage]]], [[before]], %c10000000
// 128 x 64 + 64 x 128 elements of 2 bytes.
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]]{{\[}}[[stage]]], %c32768
// CHECK-NEXT: [[tile:%.+]] = memref.subview [[A]]{{\[}}[[stage]], 0, 0, 0] [1, 1, 128, 64]
// CHECK-NEXT: nvgpu.tma.async.load [[a_map]]{{\[}}[[k]], [[i:%.+]]], [[full]]{{\[}}[[stage]]] to [[tile]] :
// CHECK-NEXT: [[tile:%.+]] = memref.subview [[B]]{{\[}}[[stage]], 0, 0, 0] [1, 1, 64, 64]
// CHECK-NEXT: nvgpu.tma.async.load [[b_map]]{{\[}}[[j:%.+]], [[k]]], [[full]]{{\[}}[[stage]]] to [[tile]] :
// CHECK-NEXT: [[tile:%.+]] = memref.subview [[B]]{{\[}}[[stage]], 1, 0, 0] [1, 1, 64, 64]
// CHECK-NEXT: [[right:%.+]] = affine.apply #[[to_right]]()[%{{.*}}]
// CHECK-NEXT: nvgpu.tma.async.load [[b_map]]{{\[}}[[right]], [[k]]], [[full]]{{\[}}[[stage]]] to [[tile]] :
// CHECK-NEXT: }
// CHECK: nvgpu.mbarrier.try_wait.parity [[full]]{{\[}}[[stage]]], [[parity]], %c10000000
// CHECK: [[a:%.+]] = nvgpu.warpgroup.generate.descriptor %{{.*}}, [[a_map]] : memref<1x64x64xf16
// CHECK: [[b:%.+]] = nvgpu.warpgroup.generate.descriptor %{{.*}}, [[b_map]] : memref<2x64x64xf16
// CHECK: [[next:%.+]] = nvgpu.warpgroup.mma [[a]], [[b]], [[sum]] {transposeB, waitGroup = 0 : i64}
// CHECK: [[one:%.+]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]{{\[}}[[stage]]]
// CHECK-NEXT: }
// CHECK-NEXT: [[following:%.+]] = arith.addi [[stage]], %c1
// CHECK-NEXT: [[wraps:%.+]] = arith.cmpi eq, [[following]], %c3
// CHECK-NEXT: [[next_stage:%.+]] = arith.select [[wraps]], %c0, [[following]]
// CHECK-NEXT: [[flipped:%.+]] = arith.xori [[parity]], %true
// CHECK-NEXT: [[next_parity:%.+]] = arith.select [[wraps]], [[flipped]], [[parity]]
// CHECK-NEXT: scf.yield [[next_stage]], [[next_parity]], [[next]]
// CHECK-NEXT: }
// C = AB + C: sums start from zero, and are added to C.
// CHECK: [[rows:%.+]] = memref.subview [[sums]][%{{.*}}, 0] [64, 128]
// CHECK-NEXT: "tc.warpgroup_mma_store"([[steps]]#2, [[rows]])
// CHECK-NEXT: linalg.add ins([[sums]], [[c:%.+]] : {{.*}}) outs([[c]] :
// CHECK-NEXT: scf.yield [[steps]]#0, [[steps]]#1
// CHECK-NOT: {{linalg.copy|linalg.matmul|linalg.fill}}
// CHECK: // -----

// One stage: the place stays, and the parity turns in every step.
// ONE-LABEL: func.func @accumulate(
// ONE: memref.alloc() {operand_a} : memref<1x1x128x64xf16,
// ONE: nvgpu.mbarrier.create -> <memorySpace = #gpu.address_space<workgroup>>
// ONE: scf.for %{{.*}} to %c192 step %c64 iter_args([[parity:%\w+]] = %{{\w+}}, %{{\w+}} = %{{\w+}})
// ONE-NEXT: scf.if
// ONE-NEXT: [[other:%.+]] = arith.xori [[parity]], %true
// ONE: nvgpu.mbarrier.try_wait.parity %{{.*}}[%c0], [[parity]],
// ONE: nvgpu.mbarrier.arrive %{{.*}}[%c0]
// ONE: [[other:%.+]] = arith.xori [[parity]], %true
// ONE-NEXT: scf.yield [[other]],
#space = #gpu.address_space<workgroup>
#a_view = strided<[192, 1], offset: ?>
#b_view = strided<[256, 1], offset: ?>
#tile = affine_map<()[s0] -> (s0 * 128)>
func.func @accumulate(%A: memref<256x192xf16>, %B: memref<192x256xf16>, %C: memref<256x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c192 = arith.constant 192 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x128xf32, #space>
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x128xf16, #space>
    %block = gpu.block_id x
    %j = affine.apply #tile()[%block]
    scf.for %row = %c0 to %c2 step %c1 {
      %i = affine.apply #tile()[%row]
      %a_rows = memref.subview %A[%i, 0] [128, 192] [1, 1] : memref<256x192xf16> to memref<128x192xf16, #a_view>
      %b_columns = memref.subview %B[0, %j] [192, 128] [1, 1] : memref<192x256xf16> to memref<192x128xf16, #b_view>
      %c = memref.subview %C[%i, %j] [128, 128] [1, 1] : memref<256x256xf32> to memref<128x128xf32, #b_view>
      linalg.copy {operand_c} ins(%c : memref<128x128xf32, #b_view>) outs(%sums : memref<128x128xf32, #space>)
      scf.for %k = %c0 to %c192 step %c64 {
        %a = memref.subview %a_rows[0, %k] [128, 64] [1, 1]
            : memref<128x192xf16, #a_view> to memref<128x64xf16, #a_view>
        linalg.copy {operand_a} ins(%a : memref<128x64xf16, #a_view>) outs(%shared_a : memref<128x64xf16, #space>)
        %b = memref.subview %b_columns[%k, 0] [64, 128] [1, 1]
            : memref<192x128xf16, #b_view> to memref<64x128xf16, #b_view>
        linalg.copy {operand_b} ins(%b : memref<64x128xf16, #b_view>) outs(%shared_b : memref<64x128xf16, #space>)
        linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x128xf16, #space>)
            outs(%sums : memref<128x128xf32, #space>)
      }
      linalg.copy {operand_c} ins(%sums : memref<128x128xf32, #space>) outs(%c : memref<128x128xf32, #b_view>)
    }
    gpu.terminator
  }
  return
}

// Of three stages only.
// -----

// C = AB, of one tile and one step of k: no loop carries anything. The fill goes, and the copy to C stays.
// CHECK-LABEL: func.func @one_step(
// CHECK-NOT: {{scf.for .* iter_args|linalg.fill|linalg.add}}
// CHECK: nvgpu.mbarrier.try_wait.parity [[empty:%.+]][%c0], %true,
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full:%.+]][%c0], %c24576
// CHECK: nvgpu.tma.async.load %{{.*}}[%c0, %c0], [[full]][%c0]
// CHECK: nvgpu.tma.async.load %{{.*}}[%c0, %c0], [[full]][%c0]
// CHECK: nvgpu.mbarrier.try_wait.parity [[full]][%c0], %false,
// CHECK: [[sums:%.+]] = nvgpu.warpgroup.mma %
// CHECK: "tc.warpgroup_mma_store"([[sums]], %
// CHECK: nvgpu.mbarrier.arrive [[empty]][%c0]
// CHECK: linalg.copy {operand_c} ins(%{{.*}} outs(%C :
// CHECK-NOT: {{scf.for .* iter_args|linalg.fill|linalg.add}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @one_step(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// Column-major, A's tile is stored 64 x 128 in two boxes, of which each warpgroup reads one; B's runs along k. nvgpu
// has no such product.
// CHECK-LABEL: func.func @column_major(
// CHECK: box[%c64, %c64] : memref<*xf16>
// CHECK: box[%c64, %c64] : memref<*xf16>
// CHECK: [[A:%.+]] = memref.alloc() {operand_a} : memref<3x2x64x64xf16,
// CHECK: memref.alloc() {operand_b} : memref<3x1x64x64xf16,
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// CHECK-COUNT-3: nvgpu.tma.async.load
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: [[part:%.+]] = memref.subview %{{.*}}[%{{.*}}, 0, 0] [1, 64, 64] [1, 1, 1]
// CHECK: [[a:%.+]] = nvgpu.warpgroup.generate.descriptor [[part]]
// CHECK: "tc.warpgroup_mma"([[a]], %{{.*}}) {{[<{]+}}transposeA, waitGroup = 0 : i64{{[>}]+}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @column_major(%A: memref<64x128xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<64x128xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<64x128xf16>) outs(%shared_a : memref<64x128xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    linalg.matmul indexing_maps = [#a, #b, #c]
        ins(%shared_a, %shared_b : memref<64x128xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// 128 elements of a byte are 128 bytes. fp8 of either kind multiplies the other.
// CHECK-LABEL: func.func @fp8(
// CHECK: memref.alloc() {operand_a} : memref<3x1x128x128xf8E4M3FN,
// CHECK: memref.alloc() {operand_b} : memref<3x1x64x128xf8E5M2,
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// CHECK: nvgpu.warpgroup.mma {{.*}} {waitGroup = 0 : i64}
// CHECK-SAME: : <tensor = memref<64x128xf8E4M3FN, #gpu.address_space<workgroup>>>,
// CHECK-SAME: <tensor = memref<128x64xf8E5M2,
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @fp8(%A: memref<128x128xf8E4M3FN>, %B: memref<64x128xf8E5M2>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x128xf8E4M3FN, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x128xf8E5M2, #space>
    linalg.copy {operand_a} ins(%A : memref<128x128xf8E4M3FN>) outs(%shared_a : memref<128x128xf8E4M3FN, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x128xf8E5M2>) outs(%shared_b : memref<64x128xf8E5M2, #space>)
    linalg.matmul indexing_maps = [#a, #b, #c]
        ins(%shared_a, %shared_b : memref<128x128xf8E4M3FN, #space>, memref<64x128xf8E5M2, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// Rows of 64 bytes, swizzled over 64, which nvgpu has no descriptor for; f32 is read as tf32.
// CHECK-LABEL: func.func @tf32(
// CHECK: -> <tensor = memref<128x16xf32, 3>, swizzle = swizzle_64b
// CHECK: memref.alloc() {operand_a} : memref<3x1x128x16xf32,
// CHECK: "tc.warpgroup_generate_descriptor"({{.*}} -> !nvgpu.warpgroup.descriptor<tensor = memref<64x16xtf32,
// CHECK: nvgpu.warpgroup.mma {{.*}} {waitGroup = 0 : i64} : <tensor = memref<64x16xtf32,
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @tf32(%A: memref<128x16xf32>, %B: memref<64x16xf32>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x16xf32, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x16xf32, #space>
    linalg.copy {operand_a} ins(%A : memref<128x16xf32>) outs(%shared_a : memref<128x16xf32, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x16xf32>) outs(%shared_b : memref<64x16xf32, #space>)
    linalg.matmul indexing_maps = [#a, #b, #c]
        ins(%shared_a, %shared_b : memref<128x16xf32, #space>, memref<64x16xf32, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// 16 elements of A are 32 bytes; B's rows stay 128 bytes wide. Sums of f16.
// CHECK-LABEL: func.func @narrow(
// CHECK: -> <tensor = memref<128x16xf16, 3>, swizzle = swizzle_32b
// CHECK: -> <tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c6144
// CHECK: nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf16>>
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @narrow(%A: memref<128x16xf16>, %B: memref<16x64xf16>, %C: memref<128x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf16, #space>
    linalg.fill ins(%zero : f16) outs(%sums : memref<128x64xf16, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x16xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<16x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x16xf16>) outs(%shared_a : memref<128x16xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<16x64xf16>) outs(%shared_b : memref<16x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x16xf16, #space>, memref<16x64xf16, #space>)
        outs(%sums : memref<128x64xf16, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf16, #space>) outs(%C : memref<128x64xf16>)
    gpu.terminator
  }
  return
}

// -----

// A tile that reaches beyond A: TMA fills it with zeros, and boxes and bytes are those of whole tiles. What rounds
// the sums stays.
// CHECK-LABEL: func.func @edges(
// CHECK-NOT: {{linalg.fill|operand_a, }}
// CHECK: box[%c128, %c64]
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// CHECK: nvgpu.tma.async.load %{{.*}}[%k, %i], %{{.*}} : {{.*}} -> memref<128x64xf16
// CHECK-NOT: {{linalg.fill|linalg.copy}}
// CHECK: nvgpu.warpgroup.mma %
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<?x64xf32, {{.*}}) outs(%{{.*}} : memref<?x64xf16,
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#a_view = strided<[104, 1], offset: ?>
#same = affine_map<(i, j) -> (i, j)>
func.func @edges(%A: memref<100x104xf16>, %B: memref<64x64xf16>, %C: memref<100x64xf16>, %i: index, %k: index,
                 %rows: index, %depth: index) {
  %zero = arith.constant 0.0 : f32
  %nothing = arith.constant 0.0 : f16
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    %a = memref.subview %A[%i, %k] [%rows, %depth] [1, 1] : memref<100x104xf16> to memref<?x?xf16, #a_view>
    linalg.fill ins(%nothing : f16) outs(%shared_a : memref<128x64xf16, #space>)
    %inside = memref.subview %shared_a[0, 0] [%rows, %depth] [1, 1]
        : memref<128x64xf16, #space> to memref<?x?xf16, strided<[64, 1]>, #space>
    linalg.copy {operand_a} ins(%a : memref<?x?xf16, #a_view>) outs(%inside : memref<?x?xf16, strided<[64, 1]>, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    %sums_inside = memref.subview %sums[0, 0] [%rows, 64] [1, 1]
        : memref<128x64xf32, #space> to memref<?x64xf32, strided<[64, 1]>, #space>
    %c = memref.subview %C[%i, 0] [%rows, 64] [1, 1]
        : memref<100x64xf16> to memref<?x64xf16, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%sums_inside : memref<?x64xf32, strided<[64, 1]>, #space>)
        outs(%c : memref<?x64xf16, strided<[64, 1], offset: ?>>) {
    ^bb0(%sum: f32, %old: f16):
      %rounded = arith.truncf %sum : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
// Rows of B's tile of 8 columns, 16 bytes, are loaded in a box of 32 bytes; the product reads 8 columns.
// CHECK-LABEL: func.func @narrow_b(
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c64, %c16] {{.*}} -> <tensor = memref<64x16xf16, 3>, swizzle = swizzle_32b
// CHECK: memref.alloc() {operand_b} : memref<3x1x64x16xf16, #gpu.address_space<workgroup>>
// 128 x 64 + 64 x 16 elements of 2 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c18432
// CHECK: !nvgpu.warpgroup.descriptor<tensor = memref<64x8xf16,
func.func @narrow_b(%A: memref<128x64xf16>, %B: memref<64x8xf16>, %C: memref<128x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x8xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x8xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x8xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x8xf16>) outs(%shared_b : memref<64x8xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x8xf16, #space>)
        outs(%sums : memref<128x8xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x8xf32, #space>) outs(%C : memref<128x8xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @pitch(%A: memref<128x100xf16>, %B: memref<32x64xf16>, %C: memref<128x64xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared_a = memref.alloc() {operand_a} : memref<128x32xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<32x64xf16, #space>
    %a = memref.subview %A[0, 0] [128, 32] [1, 1] : memref<128x100xf16> to memref<128x32xf16, strided<[100, 1]>>
    // expected-error@+1 {{rows of A are 100 x f16, 200 bytes; TMA requires multiples of 16 bytes: make its rows}}
    linalg.copy {operand_a} ins(%a : memref<128x32xf16, strided<[100, 1]>>) outs(%shared_a : memref<128x32xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<32x64xf16>) outs(%shared_b : memref<32x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x32xf16, #space>, memref<32x64xf16, #space>)
        outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @no_swizzle(%A: memref<128x8xf16>, %B: memref<8x64xf16>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x8xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<8x64xf16, #space>
    // expected-error@+1 {{rows of the tile of A are 16 bytes; TMA swizzles require multiples of 32}}
    linalg.copy {operand_a} ins(%A : memref<128x8xf16>) outs(%shared_a : memref<128x8xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<8x64xf16>) outs(%shared_b : memref<8x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x8xf16, #space>, memref<8x64xf16, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @high_tile(%A: memref<320x64xf16>, %B: memref<64x64xf16>, %C: memref<320x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<320x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<320x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<320x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    // expected-error@+1 {{the tile of A has 320 rows, and a box of TMA at most 256}}
    linalg.copy {operand_a} ins(%A : memref<320x64xf16>) outs(%shared_a : memref<320x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<320x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<320x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<320x64xf32, #space>) outs(%C : memref<320x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @own_matrix(%B: memref<64x64xf16>, %C: memref<128x64xf32>) {
  %A = memref.alloc() : memref<128x64xf16>
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    // expected-error@+1 {{tc.load_by_tma: expected a view of an argument of the function}}
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @to_argument(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>,
                      %shared_a: memref<128x64xf16, #space>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    // expected-error@+1 {{tc.load_by_tma: expected a copy to a tile in shared memory}}
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

func.func @no_copies(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.load_by_tma: no copies of A and B to shared memory in the launch}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    linalg.matmul ins(%A, %B : memref<128x64xf16>, memref<64x64xf16>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @no_product(%A: memref<128x64xf16>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.load_by_tma: expected one linalg.matmul in the launch, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @copied_before(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    // expected-error@+1 {{tc.load_by_tma: expected the copies of A and B in the same block as the linalg.matmul}}
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    scf.for %k = %c0 to %c4 step %c1 {
      linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
          outs(%C : memref<128x64xf32>)
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @other_tile(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>,
                     %b: memref<64x64xf16, #space>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    // expected-error@+1 {{tc.convert_to_warpgroup_mma: its operands are not loaded by TMA}}
    linalg.matmul ins(%shared_a, %b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// A cast like that of a stage, of a buffer that TMA does not load.
#space = #gpu.address_space<workgroup>
func.func @other_cast(%A: memref<128x64xf16>, %C: memref<128x64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.convert_to_warpgroup_mma: a tile of the pipeline is not loaded by TMA}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %other = memref.alloc() : memref<3x1x64x64xf16, #space>
    %stage = memref.subview %other[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
        : memref<3x1x64x64xf16, #space> to memref<1x64x64xf16, strided<[4096, 64, 1]>, #space>
    %b = builtin.unrealized_conversion_cast %stage
        : memref<1x64x64xf16, strided<[4096, 64, 1]>, #space> to memref<64x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.matmul ins(%shared_a, %b : memref<128x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @few_rows(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<64x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<64x64xf16>) outs(%shared_a : memref<64x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x64xf16>) outs(%shared_b : memref<64x64xf16, #space>)
    // expected-error@+1 {{a tile of 64 rows for 2 warpgroups: each takes a multiple of 64 rows}}
    linalg.matmul ins(%shared_a, %shared_b : memref<64x64xf16, #space>, memref<64x64xf16, #space>)
        outs(%sums : memref<64x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<64x64xf32, #space>) outs(%C : memref<64x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @few_columns(%A: memref<128x64xf16>, %B: memref<36x64xf16>, %C: memref<128x36xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x36xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x36xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<36x64xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<36x64xf16>) outs(%shared_b : memref<36x64xf16, #space>)
    // expected-error@+1 {{a tile of 36 columns: wgmma takes multiples of 8 up to 256}}
    linalg.matmul indexing_maps = [#a, #b, #c]
        ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<36x64xf16, #space>)
        outs(%sums : memref<128x36xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x36xf32, #space>) outs(%C : memref<128x36xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @many_columns(%A: memref<128x64xf16>, %B: memref<64x320xf16>, %C: memref<128x320xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x320xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x320xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x64xf16, #space>
    %shared_b = memref.alloc() {operand_b} : memref<64x320xf16, #space>
    linalg.copy {operand_a} ins(%A : memref<128x64xf16>) outs(%shared_a : memref<128x64xf16, #space>)
    linalg.copy {operand_b} ins(%B : memref<64x320xf16>) outs(%shared_b : memref<64x320xf16, #space>)
    // expected-error@+1 {{a tile of 320 columns: wgmma takes multiples of 8 up to 256}}
    linalg.matmul ins(%shared_a, %shared_b : memref<128x64xf16, #space>, memref<64x320xf16, #space>)
        outs(%sums : memref<128x320xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x320xf32, #space>) outs(%C : memref<128x320xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @row_major_fp8(%A: memref<128x128xf8E5M2>, %B: memref<128x64xf8E5M2>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<128x128xf8E5M2, #space>
    %shared_b = memref.alloc() {operand_b} : memref<128x64xf8E5M2, #space>
    linalg.copy {operand_a} ins(%A : memref<128x128xf8E5M2>) outs(%shared_a : memref<128x128xf8E5M2, #space>)
    linalg.copy {operand_b} ins(%B : memref<128x64xf8E5M2>) outs(%shared_b : memref<128x64xf8E5M2, #space>)
    // expected-error@+1 {{wgmma reads f8E5M2 only along k: A must be row-major and B column-major, and B is not}}
    linalg.matmul ins(%shared_a, %shared_b : memref<128x128xf8E5M2, #space>, memref<128x64xf8E5M2, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @column_major_tf32(%A: memref<32x128xf32>, %B: memref<32x64xf32>, %C: memref<128x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<128x64xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<128x64xf32, #space>)
    %shared_a = memref.alloc() {operand_a} : memref<32x128xf32, #space>
    %shared_b = memref.alloc() {operand_b} : memref<32x64xf32, #space>
    linalg.copy {operand_a} ins(%A : memref<32x128xf32>) outs(%shared_a : memref<32x128xf32, #space>)
    linalg.copy {operand_b} ins(%B : memref<32x64xf32>) outs(%shared_b : memref<32x64xf32, #space>)
    // expected-error@+1 {{A must be row-major and B column-major, and A and B are not}}
    linalg.matmul indexing_maps = [#a, #b, #c]
        ins(%shared_a, %shared_b : memref<32x128xf32, #space>, memref<32x64xf32, #space>)
        outs(%sums : memref<128x64xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<128x64xf32, #space>) outs(%C : memref<128x64xf32>)
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.load_by_tma: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
