// Each slot of partial sums is sent to the block that reduces it, whose mbarrier counts the bytes; that block reads its
// own shared memory. Blocks wait once for each other's start, and each for the bytes of the others.
//
// RUN: %stepladder-opt %s --pipeline wgmma --set early_weights=true --set split_k=2 --set epilogue=registers \
// RUN:   --step push_partial_sums --split-input-file --verify-diagnostics | FileCheck %s

// Two blocks and three slots of 16 bytes for each of 128 threads: two slots of the first block, and one of the second.
// CHECK-DAG: #[[left:.+]] = affine_map<()[s0] -> (s0 * -2 + 3)>
// CHECK-DAG: #[[bytes:.+]] = affine_map<()[s0] -> (s0 * 2048)>
// CHECK-DAG: #[[slot:.+]] = affine_map<()[s0] -> (s0 * 2)>
// CHECK-DAG: #[[next:.+]] = affine_map<()[s0] -> (s0 * 2 + 1)>
// CHECK-DAG: #[[there:.+]] = affine_map<()[s0, s1] -> (s0 + s1 * 1024)>
// CHECK-DAG: #[[next_there:.+]] = affine_map<()[s0, s1] -> (s0 + s1 * 1024 + 512)>
// CHECK-DAG: #[[back:.+]] = affine_map<()[s0] -> (s0 * -1024)>
// CHECK-DAG: #[[on:.+]] = affine_map<()[s0] -> (s0 * -1024 + 1024)>
// CHECK-LABEL: func.func @two_blocks(
// CHECK: [[tile:%.+]] = memref.alloc() {split_k_workspace} : memref<4x512xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT: [[sums:%.+]] = nvgpu.mbarrier.create
// One thread expects the bytes of the other block, for the slots that there are.
// CHECK: [[thread:%.+]] = gpu.thread_id x
// CHECK-NEXT: [[one:%.+]] = arith.cmpi eq, [[thread]], %c0
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: nvgpu.mbarrier.init [[sums]][%c0], %c1
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: [[rank:%.+]] = gpu.cluster_block_id x
// CHECK-NEXT: [[ahead:%.+]] = affine.apply #[[left]]()[[[rank]]]
// CHECK-NEXT: [[most:%.+]] = arith.minsi [[ahead]], %c2
// CHECK-NEXT: [[slots:%.+]] = arith.maxsi [[most]], %c0
// CHECK-NEXT: [[count:%.+]] = affine.apply #[[bytes]]()[[[slots]]]
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[sums]][%c0], [[count]]
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.cluster.arrive.relaxed
// CHECK-NEXT: gpu.barrier
// CHECK: [[part:%.+]] = gpu.cluster_block_id x
// CHECK: [[own:%.+]] = llvm.inttoptr {{.*}} to !llvm.ptr<3>
// CHECK-NEXT: [[integer:%.+]] = nvgpu.mbarrier.get [[sums]][%c0] {{.*}} -> i64
// CHECK-NEXT: [[mbarrier:%.+]] = llvm.inttoptr [[integer]] : i64 to !llvm.ptr<3>
// CHECK-NEXT: nvvm.cluster.wait
// The slots of the first block: it stores its own, and the other one sends them.
// CHECK-NEXT: [[mine:%.+]] = arith.cmpi eq, [[part]], %c0
// CHECK-NEXT: scf.if [[mine]] {
// CHECK-NEXT: [[row:%.+]] = affine.apply #[[slot]]()[[[part]]]
// CHECK-NEXT: vector.store %sum, [[tile]]{{\[}}[[row]], %place] {alignment = 16 : i64}
// CHECK-NEXT: [[row:%.+]] = affine.apply #[[next]]()[[[part]]]
// CHECK-NEXT: vector.store %sum, [[tile]]{{\[}}[[row]], %place] {alignment = 16 : i64}
// CHECK-NEXT: } else {
// CHECK-NEXT: [[other:%.+]] = nvvm.mapa [[own]], %c0_i32 : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-NEXT: [[full:%.+]] = nvvm.mapa [[mbarrier]], %c0_i32 : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-NEXT: [[place:%.+]] = affine.apply #[[there]]()[%place, [[part]]]
// CHECK: [[address:%.+]] = llvm.getelementptr [[other]][{{.*}}] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
// CHECK-NEXT: [[words:%.+]] = vector.bitcast %sum : vector<4xf32> to vector<4xi32>
// CHECK-NEXT: [[to:%.+]] = llvm.ptrtoint [[address]] : !llvm.ptr<7> to i64
// CHECK-NEXT: [[complete:%.+]] = llvm.ptrtoint [[full]] : !llvm.ptr<7> to i64
// CHECK-NEXT: [[word0:%.+]] = vector.extract [[words]][0]
// CHECK-NEXT: [[word1:%.+]] = vector.extract [[words]][1]
// CHECK-NEXT: [[word2:%.+]] = vector.extract [[words]][2]
// CHECK-NEXT: [[word3:%.+]] = vector.extract [[words]][3]
// CHECK-NEXT: nvvm.inline_ptx "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [{$r0}], {{[{]}}{$r2}, {$r3}, {$r4}, {$r5}}, [{$r1}];"
// CHECK-SAME: ro([[to]], [[complete]], [[word0]], [[word1]], [[word2]], [[word3]] : {{.*}}) memory_clobber = true
// CHECK: affine.apply #[[next_there]]()[%place, [[part]]]
// CHECK: nvvm.inline_ptx "st.async
// CHECK-NEXT: }
// CHECK-NEXT: [[mine:%.+]] = arith.cmpi eq, [[part]], %c1
// CHECK-NEXT: scf.if [[mine]] {
// CHECK-NEXT: affine.apply #[[slot]]()[[[part]]]
// CHECK-NEXT: vector.store
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.mapa [[own]], %c1_i32
// CHECK-NEXT: nvvm.mapa [[mbarrier]], %c1_i32
// CHECK-NEXT: affine.apply #[[there]]()[%place, [[part]]]
// CHECK: nvvm.inline_ptx "st.async
// CHECK-NEXT: }
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[sums]][%c0], %false, %c10000000
// CHECK-NOT: nvvm
// CHECK: affine.apply #[[back]]()[[[part]]]
// CHECK: [[first:%.+]] = llvm.getelementptr [[own]][{{.*}}] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
// CHECK-NEXT: llvm.load [[first]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: affine.apply #[[on]]()[[[part]]]
// CHECK: [[second:%.+]] = llvm.getelementptr [[own]]
// CHECK-NEXT: llvm.load [[second]]
// CHECK-NOT: nvvm
// CHECK: // -----
#space = #gpu.address_space<workgroup>
func.func @two_blocks(%C: memref<64x24xf32>, %row: index, %column: index, %sum: vector<4xf32>, %number: i64,
                      %place: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c256 = arith.constant 256 : index
  %first = arith.constant 0 : i32
  %second = arith.constant 1 : i32
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c2, %ky = %c1, %kz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {split_k_workspace} : memref<3x512xf32, #space>
    gpu.barrier
    vector.store %sum, %tile[%c0, %place] {alignment = 16 : i64} : memref<3x512xf32, #space>, vector<4xf32>
    vector.store %sum, %tile[%c1, %place] {alignment = 16 : i64} : memref<3x512xf32, #space>, vector<4xf32>
    vector.store %sum, %tile[%c2, %place] {alignment = 16 : i64} : memref<3x512xf32, #space>, vector<4xf32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %address = memref.extract_aligned_pointer_as_index %tile : memref<3x512xf32, #space> -> index
    %integer = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %integer : i64 to !llvm.ptr<3>
    %tile0 = nvvm.mapa %pointer, %first : !llvm.ptr<3> -> !llvm.ptr<7>
    %tile1 = nvvm.mapa %pointer, %second : !llvm.ptr<3> -> !llvm.ptr<7>
    %there0 = llvm.getelementptr %tile0[%number] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
    %part0 = llvm.load %there0 {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
    %there1 = llvm.getelementptr %tile1[%number] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, f32
    %part1 = llvm.load %there1 {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
    %total = arith.addf %part0, %part1 : vector<4xf32>
    vector.store %total, %C[%row, %column] : memref<64x24xf32>, vector<4xf32>
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
func.func @one_barrier(%sum: vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // expected-error@+1 {{tc.push_partial_sums: expected stores of partial sums, and two barriers of the cluster behind them}}
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c2, %ky = %c1, %kz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {split_k_workspace} : memref<3x512xf32, #space>
    gpu.barrier
    vector.store %sum, %tile[%c0, %c0] : memref<3x512xf32, #space>, vector<4xf32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  return
}

// -----

// Whose sums a slot has is not known.
#space = #gpu.address_space<workgroup>
func.func @any_slot(%sum: vector<4xf32>, %slot: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c2, %ky = %c1, %kz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %tile = memref.alloc() {split_k_workspace} : memref<3x512xf32, #space>
    gpu.barrier
    // expected-error@+1 {{tc.push_partial_sums: expected partial sums in register order, whose slots are constants}}
    vector.store %sum, %tile[%slot, %c0] : memref<3x512xf32, #space>, vector<4xf32>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.terminator
  }
  return
}
