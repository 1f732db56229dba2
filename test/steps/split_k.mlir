// Several blocks divide the steps of k of a tile and leave their sums where the others find them. Once all have, each
// adds up the parts of its share of the tile, in order, and writes C.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --set persistent_blocks=0 --set epilogue=registers --step split_k \
// DEFINE:   --set block_m=64 --set consumer_warpgroups=1 --split-input-file
// DEFINE: %{accepted} = sed '/^\/\/ Refused/Q' %s
// RUN: %{opt} %s --set split_k=3 --verify-diagnostics | FileCheck %s
// RUN: %{accepted} | %{opt} - --set split_k=3 --set split_k_workspace=memory | FileCheck %s --check-prefix=MEMORY
// RUN: sed -n '/^\/\/ The blocks of a cluster/,/^}/p' %s | %{opt} - --set split_k=3 --set split_k_workspace=memory \
// RUN:   | FileCheck %s --check-prefix=CLUSTERS
// RUN: sed -n '/^\/\/ C is transposed/,/^}/p' %s | %{opt} - --set split_k=3 --set early_weights=true \
// RUN:   | FileCheck %s --check-prefix=REGISTERS
// RUN: sed -n '/^\/\/ C is transposed/,/^}/p' %s | %{opt} - --set split_k=8 --set early_weights=true \
// RUN:   | FileCheck %s --check-prefix=PAIRS
// RUN: %{accepted} | %{opt} - | FileCheck %s --check-prefix=ONE
// RUN: %refused 2 %{opt} %s --set split_k=10 | FileCheck %s --check-prefix=LARGE

// LARGE: step 'split_k': split_k_workspace = cluster requires split_k to be at most 8

// Eight steps of 64: three, three and two. 2 x 4 tiles of three blocks each.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 192)>
// CHECK-DAG: #[[end:.+]] = affine_map<()[s0] -> (512, s0 * 192 + 192)>
// CHECK-DAG: #[[share:.+]] = affine_map<()[s0, s1] -> (s0 * 176 + s1)>
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0, s1] -> (s0 * 22 + s1 floordiv 8)>
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0] -> (s0 * 4 - (s0 floordiv 8) * 32)>
// CHECK-DAG: #[[to_place:.+]] = affine_map<()[s0, s1] -> (s0 * 880 + s1 * 4 + (s1 floordiv 8) * 8)>
// CHECK-LABEL: func.func @accumulate(
// CHECK: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c3, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c12, %{{[^)]*}} = %c2, %{{[^)]*}} = %c1)
// CHECK-SAME: threads({{[^)]*}}) in (%{{[^)]*}} = %c128, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// 32 bytes behind each row of sums.
// CHECK: [[parts:%.+]] = memref.alloc() {split_k_workspace} : memref<64x40xf32, #gpu.address_space<workgroup>>
// CHECK-NOT: gpu.block_id
// CHECK: [[x:%.+]] = gpu.cluster_id x
// CHECK-NEXT: [[y:%.+]] = gpu.cluster_id y
// CHECK-NEXT: [[part:%.+]] = gpu.cluster_block_id x
// CHECK-NEXT: [[from:%.+]] = affine.apply #[[begin]]()[[[part]]]
// CHECK-NEXT: [[to:%.+]] = affine.min #[[end]]()[[[part]]]
// No part is empty, which LLVM is told.
// CHECK-NEXT: [[some:%.+]] = arith.cmpi slt, [[from]], [[to]]
// CHECK-NEXT: llvm.intr.assume [[some]]
// CHECK: [[C:%.+]] = memref.subview %C{{.*}} [64, 32] [1, 1]
// Every part starts from zero; C is added once.
// CHECK: linalg.fill {{.*}} outs([[sums:%.+]] :
// CHECK-NOT: linalg.copy {operand_c}
// CHECK: scf.for %{{.*}} = [[from]] to [[to]] step %c64
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: }
// CHECK-NEXT: [[own:%.+]] = memref.subview [[parts]][0, 0] [64, 32] [1, 1]
// CHECK-NEXT: linalg.copy {{.*}}ins([[sums]] : {{.*}}) outs([[own]] :
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: [[address:%.+]] = memref.extract_aligned_pointer_as_index [[parts]]
// CHECK: [[own:%.+]] = llvm.inttoptr {{.*}} to !llvm.ptr<3>
// CHECK-NEXT: [[tile0:%.+]] = nvvm.mapa [[own]], %c0_i32 : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-NEXT: [[tile1:%.+]] = nvvm.mapa [[own]], %c1_i32
// CHECK-NEXT: [[tile2:%.+]] = nvvm.mapa [[own]], %c2_i32
// CHECK-NOT: nvvm.mapa
// Each block takes 22 of the 64 rows of eight times four, the last one 20, and neighbouring threads four neighbours each.
// CHECK: [[thread:%.+]] = gpu.thread_id x
// CHECK-NEXT: scf.for [[unit:%.+]] = [[thread]] to %c176 step %c128 {
// CHECK-NEXT: [[which:%.+]] = affine.apply #[[share]]()[[[part]], [[unit]]]
// CHECK-NEXT: [[i:%.+]] = affine.apply #[[to_row]]()[[[part]], [[unit]]]
// CHECK-NEXT: [[j:%.+]] = affine.apply #[[to_column]]()[[[unit]]]
// CHECK-NEXT: [[inside:%.+]] = arith.cmpi ult, [[which]], %c512
// CHECK-NEXT: scf.if [[inside]] {
// CHECK-NEXT: [[place:%.+]] = affine.apply #[[to_place]]()[[[part]], [[unit]]]
// CHECK-NEXT: [[number:%.+]] = arith.index_cast [[place]] : index to i64
// CHECK-NEXT: [[there:%.+]] = llvm.getelementptr [[tile0]][[[number]]] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
// CHECK-NEXT: [[part0:%.+]] = llvm.load [[there]] {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
// CHECK-NEXT: [[there:%.+]] = llvm.getelementptr [[tile1]]
// CHECK-NEXT: [[part1:%.+]] = llvm.load [[there]]
// CHECK-NEXT: [[there:%.+]] = llvm.getelementptr [[tile2]]
// CHECK-NEXT: [[part2:%.+]] = llvm.load [[there]]
// CHECK-NEXT: [[sum1:%.+]] = arith.addf [[part0]], [[part1]]
// CHECK-NEXT: [[sum2:%.+]] = arith.addf [[sum1]], [[part2]]
// CHECK-NEXT: [[old:%.+]] = vector.load [[C]]{{\[}}[[i]], [[j]]] {alignment = 16 : i64}
// CHECK-NEXT: [[new:%.+]] = arith.addf [[old]], [[sum2]]
// CHECK-NEXT: vector.store [[new]], [[C]]{{\[}}[[i]], [[j]]] {alignment = 16 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: }
// No block ends while others read its sums.
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: gpu.terminator
// CHECK: // -----

// In memory: three parts of a tile are three neighbours in the grid, which is otherwise as it was.
// MEMORY-DAG: #[[part_of:.+]] = affine_map<()[s0] -> (s0 mod 3)>
// MEMORY-DAG: #[[tile_of:.+]] = affine_map<()[s0, s1] -> (s0 * 4 + s1 floordiv 3)>
// Units of four: 32 lanes of 8 rows and 16 columns, two such beside each other.
// MEMORY-DAG: #[[to_row:.+]] = affine_map<()[s0] -> ((s0 floordiv 64) * 8 + (s0 mod 32) floordiv 4)>
// MEMORY-DAG: #[[to_left:.+]] = affine_map<()[s0] -> (s0 * 2 + (s0 floordiv 32) * 16 -{{.*}} (s0 floordiv 4) * 8)>
// MEMORY-DAG: #[[to_right:.+]] = affine_map<()[s0] -> (s0 * 2 + (s0 floordiv 32) * 16 -{{.*}} (s0 floordiv 4) * 8 + 8)>
// MEMORY-DAG: memref.global "private" @split_k_workspace : memref<8x3x512x4xf32, {{.*}}<global>> = uninitialized
// MEMORY-DAG: memref.global "private" @split_k_semaphores : memref<8xi32, #gpu.address_space<global>> = dense<0>
// MEMORY-LABEL: func.func @accumulate(
// MEMORY-NOT: cluster
// MEMORY: gpu.launch blocks({{[^)]*}}) in (%{{[^)]*}} = %c12, %{{[^)]*}} = %c2, %{{[^)]*}} = %c1)
// MEMORY-NOT: cluster
// MEMORY: [[x:%.+]] = gpu.block_id x
// MEMORY-NEXT: [[y:%.+]] = gpu.block_id y
// MEMORY-NEXT: [[part:%.+]] = affine.apply #[[part_of]]()[[[x]]]
// MEMORY: [[tile:%.+]] = affine.apply #[[tile_of]]()[[[y]], [[x]]]
// MEMORY: [[C:%.+]] = memref.subview %C
// MEMORY: scf.for
// MEMORY: [[sums:%.+]] = memref.get_global @split_k_workspace
// MEMORY-NEXT: [[own:%.+]] = memref.subview [[sums]]{{\[}}[[tile]], [[part]], 0, 0] [1, 1, 512, 4]
// MEMORY-NEXT: [[held:%.+]] = memref.expand_shape {{.*}} into memref<4x2x8x2x2x4x2xf32, #gpu.address_space<workgroup>>
// MEMORY-NEXT: [[units:%.+]] = memref.expand_shape [[own]]
// MEMORY-NEXT: linalg.transpose ins([[held]] : {{.*}}) outs([[units]] : {{.*}}) permutation = [0, 1, 3, 2, 5, 4, 6]
// All threads have written; one counts, up to twice the parts, and waits for the other half; all read.
// MEMORY-NEXT: nvvm.barrier id = %c1_i32 number_of_threads = %c128_i32
// MEMORY: scf.if
// MEMORY-NEXT: memref.get_global @split_k_semaphores
// MEMORY: [[before:%.+]] = nvvm.inline_ptx "atom.release.gpu.global.inc.u32 {$w0}, [{$r0}], {$r1};"
// MEMORY-SAME: ro([[address:%.+]], %c5_i32 : i64, i32)
// MEMORY-NEXT: nvvm.inline_ptx "{{.*}}ld.acquire.gpu.global.b32 now, [{$r0}];
// MEMORY-SAME: setp.ge.xor.u32 p, now, {$r2}, q; @!p bra WAIT;}" ro([[address]], [[before]], %c3_i32 : i64, i32, i32)
// MEMORY-NEXT: }
// MEMORY-NEXT: nvvm.barrier id = %c1_i32 number_of_threads = %c128_i32
// MEMORY: scf.for [[unit:%.+]] = %{{.*}} to %c512 step %c384 {
// MEMORY-NEXT: [[i:%.+]] = affine.apply #[[to_row]]()[[[unit]]]
// MEMORY-NEXT: [[j:%.+]] = affine.apply #[[to_left]]()[[[unit]]]
// MEMORY-NEXT: [[next:%.+]] = affine.apply #[[to_right]]()[[[unit]]]
// MEMORY-NEXT: [[parts:%.+]] = memref.subview [[sums]]{{\[}}[[tile]], 0, 0, 0] [1, 3, 512, 4]
// MEMORY-NEXT: [[part0:%.+]] = vector.load [[parts]][%c0, [[unit]], %c0] {alignment = 16 : i64}
// MEMORY-NEXT: [[part1:%.+]] = vector.load [[parts]][%c1, [[unit]], %c0]
// MEMORY-NEXT: [[part2:%.+]] = vector.load [[parts]][%c2, [[unit]], %c0]
// MEMORY-NEXT: [[sum1:%.+]] = arith.addf [[part0]], [[part1]]
// MEMORY-NEXT: [[sum2:%.+]] = arith.addf [[sum1]], [[part2]]
// MEMORY-NEXT: [[left:%.+]] = vector.shuffle [[sum2]], %{{.*}} [0, 1]
// MEMORY-NEXT: [[old:%.+]] = vector.load [[C]]{{\[}}[[i]], [[j]]] {alignment = 8 : i64}
// MEMORY-NEXT: [[new:%.+]] = arith.addf [[old]], [[left]]
// MEMORY-NEXT: vector.store [[new]], [[C]]{{\[}}[[i]], [[j]]] {alignment = 8 : i64}
// MEMORY-NEXT: [[right:%.+]] = vector.shuffle [[sum2]], %{{.*}} [2, 3]
// MEMORY: vector.store %{{.*}}, [[C]]{{\[}}[[i]], [[next]]] {alignment = 8 : i64}
// MEMORY-NOT: cluster
// MEMORY: // -----

// ONE-NOT: {{split_k_workspace|cluster|assume}}
// ONE: gpu.launch blocks({{[^)]*}}) in (%{{[^)]*}} = %c4, %{{[^)]*}} = %c2, %{{[^)]*}} = %c1)
// ONE-NOT: {{split_k_workspace|cluster|assume}}
// ONE: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[128, 1], offset: ?>
func.func @accumulate(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<128x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %i = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%y]
    %j = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%x]
    %c = memref.subview %C[%i, %j] [64, 32] [1, 1] : memref<128x128xf32> to memref<64x32xf32, #c_view>
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    linalg.copy {operand_c} ins(%c : memref<64x32xf32, #c_view>) outs(%sums : memref<64x32xf32, #space>)
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%c : memref<64x32xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

// C is transposed: the tile in shared memory is as well, with 16 bytes behind each row, and a thread writes neighbours of
// a row of C. In memory the tile is as it was, and elements are written one by one.
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0, s1] -> (s0 * 11 + s1 floordiv 16)>
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0] -> (s0 * 4 - (s0 floordiv 16) * 64)>
// CHECK-DAG: #[[to_place:.+]] = affine_map<()[s0, s1] -> (s0 * 748 + s1 * 4 + (s1 floordiv 16) * 4)>
// CHECK-LABEL: func.func @transposed(
// CHECK: [[parts:%.+]] = memref.alloc() {split_k_workspace} : memref<32x68xf32, #gpu.address_space<workgroup>>
// CHECK: [[own:%.+]] = memref.subview [[parts]][0, 0] [32, 64] [1, 1]
// CHECK-NEXT: [[turned:%.+]] = memref.transpose [[own]]
// CHECK-NEXT: linalg.copy ins(%{{.*}}) outs([[turned]] :
// CHECK: [[C:%.+]] = memref.subview %C[%{{.*}}, %{{.*}}] [32, 64] [1, 1]
// CHECK: scf.for [[unit:%.+]] = %{{.*}} to %c176 step %c128 {
// CHECK: [[i:%.+]] = affine.apply #[[to_row]]()[[[part:%.+]], [[unit]]]
// CHECK-NEXT: [[j:%.+]] = affine.apply #[[to_column]]()[[[unit]]]
// CHECK: affine.apply #[[to_place]]()[[[part]], [[unit]]]
// CHECK-COUNT-3: llvm.load
// CHECK: vector.store %{{.*}}, [[C]]{{\[}}[[i]], [[j]]] {alignment = 16 : i64}
// CHECK-NOT: {{memref|vector}}.store
// CHECK: // -----

// Where blocks send sums, the tile is in register order: four slots of 16 bytes for each of 128 threads. Of each thread's
// slots, two blocks reduce two, and the last one none.
// REGISTERS-DAG: #[[place:.+]] = affine_map<()[s0, s1] -> (s0 * 1024 + s1 * 4)>
// REGISTERS-LABEL: func.func @transposed(
// REGISTERS: [[parts:%.+]] = memref.alloc() {split_k_workspace} : memref<4x512xf32, #gpu.address_space<workgroup>>
// REGISTERS: [[held:%.+]] = memref.expand_shape {{.*}} output_shape [1, 1, 4, 2, 8, 4, 4, 2]
// REGISTERS-NEXT: [[slots:%.+]] = memref.expand_shape [[parts]] {{.*}} output_shape [1, 4, 1, 4, 8, 4, 2, 2]
// REGISTERS-NEXT: linalg.transpose ins([[held]] : {{.*}}) outs([[slots]] : {{.*}}) permutation = [1, 5, 0, 2, 4, 6, 3, 7]
// REGISTERS: [[C:%.+]] = memref.subview %C[%{{.*}}, %{{.*}}] [32, 64] [1, 1]
// Where a thread's places are in C is computed before the blocks wait.
// REGISTERS: [[own:%.+]] = arith.addi %thread_id_x, %c128
// REGISTERS-NEXT: [[i:%.+]] = affine.apply #{{.*}}()[[[part:%.+]], %thread_id_x]
// REGISTERS-NEXT: [[j:%.+]] = affine.apply #{{.*}}()[[[part]], %thread_id_x]
// REGISTERS-NEXT: [[below:%.+]] = affine.apply #{{.*}}()[[[part]], %thread_id_x]
// REGISTERS-COUNT-3: affine.apply #{{.*}}()[[[part]], [[own]]]
// REGISTERS-NEXT: nvvm.cluster.arrive
// REGISTERS-NEXT: nvvm.cluster.wait
// REGISTERS: [[some:%.+]] = arith.cmpi ult, [[part]], %c2
// REGISTERS-NEXT: scf.if [[some]] {
// REGISTERS-NEXT: affine.apply #[[place]]()[[[part]], %thread_id_x]
// REGISTERS-COUNT-3: llvm.load
// REGISTERS: affine.apply #[[place]]()[[[part]], [[own]]]
// REGISTERS-COUNT-3: llvm.load
// REGISTERS: memref.store %{{.*}}, [[C]]{{\[}}[[i]], [[j]]]
// REGISTERS: memref.store %{{.*}}, [[C]]{{\[}}[[next:%.+]], [[j]]]
// REGISTERS: memref.store %{{.*}}, [[C]]{{\[}}[[i]], [[below]]]
// REGISTERS: memref.store %{{.*}}, [[C]]{{\[}}[[next]], [[below]]]
// REGISTERS-COUNT-4: memref.store
// REGISTERS-NEXT: }
// REGISTERS-NOT: {{scf.if|memref.store|vector.store}}

// With no more pairs than blocks, each block reduces one of each thread.
// PAIRS-LABEL: func.func @transposed(
// PAIRS: [[parts:%.+]] = memref.alloc() {split_k_workspace} : memref<8x256xf32, #gpu.address_space<workgroup>>
// PAIRS: memref.expand_shape [[parts]] {{.*}} output_shape [1, 4, 2, 1, 4, 8, 4, 2]
// PAIRS-NEXT: linalg.transpose {{.*}} permutation = [1, 5, 3, 0, 2, 4, 6, 7]
// PAIRS: nvvm.cluster.wait
// PAIRS-NOT: {{scf.if|arith.cmpi}}
// PAIRS-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<7> -> vector<2xf32>
// PAIRS-COUNT-2: memref.store
// PAIRS-NOT: memref.store

// MEMORY-LABEL: func.func @transposed(
// MEMORY-COUNT-4: memref.store
// MEMORY-NOT: {{memref|vector}}.store
// MEMORY: // -----
#space = #gpu.address_space<workgroup>
#c_view = strided<[1, 128], offset: ?>
func.func @transposed(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %turned = memref.transpose %C (i, j) -> (j, i) : memref<64x128xf32> to memref<128x64xf32, strided<[1, 128]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %i = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%y]
    %j = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%x]
    %c = memref.subview %turned[%i, %j] [64, 32] [1, 1]
        : memref<128x64xf32, strided<[1, 128]>> to memref<64x32xf32, #c_view>
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<64x32xf32, #space>)
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%c : memref<64x32xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

// C = AB, rounded once, at the edges: only what there is of C, so many rows, and of a row so many columns. There is one
// row of tiles, whose number no block reads.
// CHECK-LABEL: func.func @rounded_edges(
// CHECK: scf.for [[unit:%.+]] = %{{.*}} to %c176 step %c128 {
// CHECK: affine.apply #{{.*}}, [[unit]]]
// CHECK-NEXT: [[i:%.+]] = affine.apply #{{.*}}, [[unit]]]
// CHECK-NEXT: [[j:%.+]] = affine.apply #{{.*}}[[[unit]]]
// CHECK: [[row_inside:%.+]] = arith.cmpi ult, [[i]], %rows
// CHECK-NEXT: scf.if [[row_inside]] {
// CHECK-COUNT-3: llvm.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: [[sum:%.+]] = arith.addf
// CHECK-NEXT: [[rounded:%.+]] = arith.truncf [[sum]] : vector<4xf32> to vector<4xf16>
// CHECK-NEXT: [[column_inside:%.+]] = arith.cmpi ult, [[j]], %columns
// CHECK-NEXT: scf.if [[column_inside]] {
// CHECK-NEXT: vector.store [[rounded]], %{{.*}}{{\[}}[[i]], [[j]]] {alignment = 8 : i64}
// CHECK-NEXT: }
// CHECK-NOT: linalg.generic

// MEMORY-LABEL: func.func @rounded_edges(
// MEMORY: [[part:%.+]] = affine.apply #{{.*}}()[[[x:%.+]]]
// MEMORY: arith.cmpi ult, %{{.*}}, %rows
// MEMORY-NEXT: scf.if
// MEMORY-COUNT-3: vector.load %{{.*}} {alignment = 16 : i64}
// MEMORY: arith.truncf
// MEMORY-COUNT-2: arith.cmpi ult, %{{.*}}, %columns
// MEMORY-NOT: {{arith.truncf|linalg.generic|arith.cmpi ult}}
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
#c_view = strided<[100, 1], offset: ?>
func.func @rounded_edges(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<60x100xf16>,
                         %rows: index, %columns: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %j = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%x]
    %c = memref.subview %C[0, %j] [%rows, %columns] [1, 1] : memref<60x100xf16> to memref<?x?xf16, #c_view>
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<64x32xf32, #space>)
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    %inside = memref.subview %sums[0, 0] [%rows, %columns] [1, 1]
        : memref<64x32xf32, #space> to memref<?x?xf32, strided<[32, 1]>, #space>
    linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%inside : memref<?x?xf32, strided<[32, 1]>, #space>) outs(%c : memref<?x?xf16, #c_view>) {
    ^bb0(%sum: f32, %old: f16):
      %rounded = arith.truncf %sum : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// A bias is read before the blocks wait for each other, at the last row and column for what is beyond the edges, and C
// after that.
// CHECK-LABEL: func.func @bias(
// CHECK: linalg.copy
// CHECK: [[thread:%.+]] = gpu.thread_id x
// CHECK: arith.minui %{{.*}}, %c511
// CHECK: [[last:%.+]] = arith.subi %columns, %c4
// CHECK: [[place:%.+]] = arith.minui %{{.*}}, [[last]]
// CHECK-NEXT: [[b:%.+]] = vector.load %{{.*}}{{\[}}[[place]]] {alignment = 8 : i64} : {{.*}} vector<4xf16>
// CHECK-COUNT-1: vector.load
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NOT: {{scf.for|vector.load}}
// CHECK-COUNT-3: llvm.load
// CHECK: arith.extf [[b]] : vector<4xf16> to vector<4xf32>
// CHECK: vector.store
// CHECK: arith.cmpi ult, %{{.*}}, %c176
// CHECK-NOT: vector.load
// CHECK: vector.store
// CHECK-NOT: vector.store
// CHECK: nvvm.cluster.arrive

// Two pairs of a vector in fragment order.
// MEMORY-LABEL: func.func @bias(
// MEMORY-COUNT-4: vector.load %{{.*}} {alignment = 4 : i64} : {{.*}} vector<2xf16>
// MEMORY: nvvm.barrier
// MEMORY-NOT: vector<2xf16>, vector<2xf16>
// MEMORY-COUNT-4: vector.store %{{.*}} : {{.*}} vector<2xf16>
#space = #gpu.address_space<workgroup>
#same = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#c_view = strided<[100, 1], offset: ?>
func.func @bias(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<60x100xf16>,
                %d: memref<100xf16>, %rows: index, %columns: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = gpu.block_id x
    %j = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%x]
    %c = memref.subview %C[0, %j] [%rows, %columns] [1, 1] : memref<60x100xf16> to memref<?x?xf16, #c_view>
    %bias = memref.subview %d[%j] [%columns] [1] : memref<100xf16> to memref<?xf16, strided<[1], offset: ?>>
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    linalg.fill ins(%zero : f32) outs(%sums : memref<64x32xf32, #space>)
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    %inside = memref.subview %sums[0, 0] [%rows, %columns] [1, 1]
        : memref<64x32xf32, #space> to memref<?x?xf32, strided<[32, 1]>, #space>
    linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]}
        ins(%inside, %bias : memref<?x?xf32, strided<[32, 1]>, #space>, memref<?xf16, strided<[1], offset: ?>>)
        outs(%c : memref<?x?xf16, #c_view>) {
    ^bb0(%sum: f32, %y: f16, %old: f16):
      %wide = arith.extf %y : f16 to f32
      %total = arith.addf %sum, %wide : f32
      %rounded = arith.truncf %total : f32 to f16
      linalg.yield %rounded : f16
    }
    gpu.terminator
  }
  return
}

// -----

// A loop that begins at 64 and ends within a step: nine steps, three a part.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 192 + 64)>
// CHECK-DAG: #[[end:.+]] = affine_map<()[s0] -> (600, s0 * 192 + 256)>
// CHECK-LABEL: func.func @from_64(
// CHECK: [[part:%.+]] = gpu.cluster_block_id x
// CHECK-NEXT: [[from:%.+]] = affine.apply #[[begin]]()[[[part]]]
// CHECK-NEXT: [[to:%.+]] = affine.min #[[end]]()[[[part]]]
// CHECK: scf.for %{{.*}} = [[from]] to [[to]] step %c64
#space = #gpu.address_space<workgroup>
func.func @from_64(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<64x32xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c600 = arith.constant 600 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    scf.for %k = %c64 to %c600 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%C : memref<64x32xf32>)
    gpu.terminator
  }
  return
}

// Refused below.
// -----

#space = #gpu.address_space<workgroup>
func.func @one_step(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  // expected-error@+1 {{tc.split_k: k has one step, which 3 blocks cannot split}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
        outs(%sums : memref<64x32xf32, #space>)
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%C : memref<64x32xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @few_steps(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    // expected-error@+1 {{tc.split_k: k has 4 steps, and 3 splits of 2 steps leave some splits empty}}
    scf.for %k = %c0 to %c256 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%C : memref<64x32xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @bounds_from_argument(%n: index, %a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>,
                                %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    // expected-error@+1 {{tc.split_k: the bounds of the loop over k are not constant}}
    scf.for %k = %c0 to %n step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%C : memref<64x32xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @tile_of_pairs(%a: memref<64x64xf16, #space>, %b: memref<64x6xf16, #space>, %C: memref<64x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x6xf32, #space>
    scf.for %k = %c0 to %c512 step %c64 {
      // expected-error@+1 {{tc.split_k: rows of a tile of 64 x 6 are not a multiple of 4 elements}}
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x6xf16, #space>)
          outs(%sums : memref<64x6xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x6xf32, #space>) outs(%C : memref<64x6xf32>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @rows_of_pairs(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<64x34xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    %c = memref.subview %C[0, 0] [64, 32] [1, 1] : memref<64x34xf32> to memref<64x32xf32, strided<[34, 1]>>
    // expected-error@+1 {{rows of C have 34 elements, and splits are reduced 4 adjacent elements at a time}}
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%c : memref<64x32xf32, strided<[34, 1]>>)
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @not_written(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error@+1 {{tc.split_k: no linalg.copy or linalg.generic writes the accumulator tile to C}}
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    gpu.terminator
  }
  return
}

// -----

// The blocks of a cluster take tiles of their own. In memory, the parts of its tiles are clusters beside each other.
// CLUSTERS-DAG: #[[part_of:.+]] = affine_map<()[s0] -> (s0 mod 3)>
// CLUSTERS-DAG: #[[column_of:.+]] = affine_map<()[s0] -> (s0 floordiv 3)>
// CLUSTERS-DAG: #[[tile_of:.+]] = affine_map<()[s0, s1] -> (s0 + (s1 floordiv 3) * 2)>
// CLUSTERS: memref.global "private" @split_k_workspace : memref<4x3x512x4xf32
// CLUSTERS: gpu.launch clusters({{[^)]*}}) in (%{{[^)]*}} = %c2, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CLUSTERS-SAME: blocks({{[^)]*}}) in (%{{[^)]*}} = %c12, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CLUSTERS: [[x:%.+]] = gpu.cluster_id x
// CLUSTERS-DAG: [[column:%.+]] = affine.apply #[[column_of]]()[[[x]]]
// CLUSTERS-DAG: [[part:%.+]] = affine.apply #[[part_of]]()[[[x]]]
// CLUSTERS: [[rank:%.+]] = gpu.cluster_block_id x
// CLUSTERS-NEXT: [[tile:%.+]] = affine.apply #[[tile_of]]()[[[rank]], [[x]]]
// CLUSTERS: memref.subview %C{{\[}}[[column]], 0, 0]
// CLUSTERS: memref.subview %{{.*}}{{\[}}[[tile]], [[part]], 0, 0] [1, 1, 512, 4]
#space = #gpu.address_space<workgroup>
#c_view = strided<[32, 1], offset: ?>
func.func @clusters(%a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>, %C: memref<2x64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  // expected-error@+1 {{its blocks form clusters, and a split-K workspace in shared memory needs its own}}
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c2, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %column = gpu.cluster_id x
    %c = memref.subview %C[%column, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf32> to memref<64x32xf32, #c_view>
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%c : memref<64x32xf32, #c_view>)
    gpu.terminator
  }
  return
}

// -----

func.func @no_product() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.split_k: k has one step, which 3 blocks cannot split}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
func.func @grid_from_argument(%n: index, %a: memref<64x64xf16, #space>, %b: memref<64x32xf16, #space>,
                              %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  // expected-error@+1 {{tc.split_k: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x32xf32, #space>
    scf.for %k = %c0 to %c512 step %c64 {
      linalg.matmul ins(%a, %b : memref<64x64xf16, #space>, memref<64x32xf16, #space>)
          outs(%sums : memref<64x32xf32, #space>)
    }
    linalg.copy {operand_c} ins(%sums : memref<64x32xf32, #space>) outs(%C : memref<64x32xf32>)
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.split_k: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
