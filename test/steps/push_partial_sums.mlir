// Each row of partial sums is stored to the block that reduces it, which reads its own shared memory. Blocks wait once
// for each other's sums, and for each other's start.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set early_weights=true --set split_k=2 --set epilogue=registers \
// RUN:   --step push_partial_sums --split-input-file --verify-diagnostics | FileCheck %s

// Two blocks and five rows: three of the first block, and two of the second.
// CHECK-DAG: #[[block:.+]] = affine_map<()[s0] -> (s0 floordiv 3)>
// CHECK-DAG: #[[place:.+]] = affine_map<()[s0, s1, s2] -> (s0 * 204 + s1 * 68 + s2 - (s1 floordiv 3) * 204)>
// CHECK-DAG: #[[back:.+]] = affine_map<()[s0] -> (s0 * -204)>
// CHECK-DAG: #[[on:.+]] = affine_map<()[s0] -> (s0 * -204 + 204)>
// CHECK-LABEL: func.func @two_blocks(
// CHECK: [[tile:%.+]] = memref.alloc() {split_k_workspace} : memref<6x68xf32, #gpu.address_space<workgroup>>
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.cluster.wait
// CHECK-NEXT: [[part:%.+]] = gpu.cluster_block_id x
// CHECK: [[own:%.+]] = llvm.inttoptr {{.*}} to !llvm.ptr<3>
// CHECK-NEXT: [[reducer:%.+]] = affine.apply #[[block]]()[%row]
// CHECK-NEXT: [[rank:%.+]] = arith.index_cast [[reducer]] : index to i32
// CHECK-NEXT: [[there:%.+]] = affine.apply #[[place]]()[[[part]], %row, %column]
// CHECK-NEXT: [[other:%.+]] = nvvm.mapa [[own]], [[rank]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: [[address:%.+]] = llvm.getelementptr [[other]][{{.*}}] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
// CHECK-NEXT: llvm.store %sum, [[address]] : f32, !llvm.ptr<7>
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NOT: nvvm.mapa
// CHECK: affine.apply #[[back]]()[[[part]]]
// CHECK: [[first:%.+]] = llvm.getelementptr [[own]][{{.*}}] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
// CHECK-NEXT: llvm.load [[first]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: affine.apply #[[on]]()[[[part]]]
// CHECK: [[second:%.+]] = llvm.getelementptr [[own]]
// CHECK-NEXT: llvm.load [[second]]
// CHECK-NOT: nvvm.cluster
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @two_blocks(%C: memref<5x64xf32>, %row: index, %column: index, %sum: f32, %number: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c256 = arith.constant 256 : index
  %first = arith.constant 0 : i32
  %second = arith.constant 1 : i32
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c2, %ky = %c1, %kz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {split_k_workspace} : memref<5x68xf32, #space>
    gpu.barrier
    %own = memref.subview %tile[0, 0] [5, 64] [1, 1] : memref<5x68xf32, #space> to memref<5x64xf32, strided<[68, 1]>, #space>
    memref.store %sum, %own[%row, %column] : memref<5x64xf32, strided<[68, 1]>, #space>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %address = memref.extract_aligned_pointer_as_index %tile : memref<5x68xf32, #space> -> index
    %integer = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %integer : i64 to !llvm.ptr<3>
    %tile0 = nvvm.mapa %pointer, %first : !llvm.ptr<3> -> !llvm.ptr<7>
    %tile1 = nvvm.mapa %pointer, %second : !llvm.ptr<3> -> !llvm.ptr<7>
    %there0 = llvm.getelementptr %tile0[%number] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
    %part0 = llvm.load %there0 {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
    %there1 = llvm.getelementptr %tile1[%number] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
    %part1 = llvm.load %there1 {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
    %total = arith.addf %part0, %part1 : vector<4xf32>
    vector.store %total, %C[%row, %column] : memref<5x64xf32>, vector<4xf32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  return
}

// -----

// Nothing is reduced in shared memory.
// CHECK-LABEL: func.func @no_workspace(
// CHECK-NOT: nvvm.cluster
// CHECK: // -----
func.func @no_workspace() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.barrier
    gpu.terminator
  }
  return
}

// -----

// One barrier: who reads the sums is not known.
#space = #gpu.address_space<workgroup>
func.func @one_barrier(%sum: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // expected-error@+1 {{tc.push_partial_sums: expected stores of partial sums, and two barriers of the cluster behind them}}
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c2, %ky = %c1, %kz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {split_k_workspace} : memref<5x68xf32, #space>
    gpu.barrier
    memref.store %sum, %tile[%c0, %c0] : memref<5x68xf32, #space>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  return
}
