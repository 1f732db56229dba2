// Tiles of A are loaded as they are, and each thread splits its elements in registers; a kernel in front splits B alone.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step split_a_into_tf32 --set block_m=64 --set block_n=64 --set block_k=32 \
// RUN:   --set consumer_warpgroups=1 --set split_f32=registers --split-input-file --verify-diagnostics | FileCheck %s

// The rows of a thread: lane / 4 of the 16 rows of its warp, and eight below.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[below:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4 + 8)>
// The row in its box of 128 bytes, whose number permutes units of 16 bytes.
// CHECK-DAG: #[[place:.+]] = affine_map<()[s0] -> ((s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0, s1] -> (s0 * 4 + s1 mod 4)>
// CHECK-LABEL: func.func @as_it_is(
// CHECK-SAME: %A: memref<64x32xf32>, %B: memref<32x64xf32>
// CHECK: [[TURNED:%.+]] = memref.transpose %B
// CHECK-NOT: memref.copy
// CHECK: [[WB1:%.+]] = memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NEXT: [[B1:%.+]] = memref.subview [[WB1]]
// CHECK-NEXT: [[WB2:%.+]] = memref.alloc() {workspace} : memref<64x64xf32>
// CHECK-NEXT: [[B2:%.+]] = memref.subview [[WB2]]
// CHECK-NEXT: linalg.generic
// CHECK-SAME: ins([[TURNED]] : memref<64x32xf32, strided<[1, 64]>>) outs([[B1]], [[B2]] :
// CHECK-NOT: linalg.generic
// CHECK: [[CA:%.+]] = memref.cast %A :
// CHECK-NEXT: [[MA:%.+]] = nvgpu.tma.create.descriptor [[CA]] box[%c64, %c32]
// CHECK-NEXT: [[CB1:%.+]] = memref.cast [[B1]] :
// CHECK-NEXT: [[CB2:%.+]] = memref.cast [[B2]] :
// CHECK-NEXT: [[MB1:%.+]] = nvgpu.tma.create.descriptor [[CB1]]
// CHECK-NEXT: [[MB2:%.+]] = nvgpu.tma.create.descriptor [[CB2]]
// CHECK: gpu.launch
// CHECK: [[SA:%.+]] = memref.alloc() {operand_a} : memref<1x1x64x32xf32
// CHECK-NEXT: [[SB1:%.+]] = memref.alloc() {operand_b}
// CHECK-NEXT: [[SB2:%.+]] = memref.alloc() {operand_b}
// CHECK: nvgpu.tma.prefetch.descriptor [[MA]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[MB1]]
// CHECK-NEXT: nvgpu.tma.prefetch.descriptor [[MB2]]
// A tile of A and both parts of one of B: 3 x 8192 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// CHECK: nvgpu.tma.async.load [[MA]][%c0, %c0]
// CHECK: nvgpu.tma.async.load [[MB1]][%c0, %c0]
// CHECK: nvgpu.tma.async.load [[MB2]][%c0, %c0]
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: [[SUMS:%.+]] = nvgpu.warpgroup.mma.init.accumulator
// CHECK: [[DB1:%.+]] = nvgpu.warpgroup.generate.descriptor {{.*}}, [[MB1]]
// CHECK: [[DB2:%.+]] = nvgpu.warpgroup.generate.descriptor {{.*}}, [[MB2]]
// CHECK-DAG: [[r:%.+]] = affine.apply #[[row]]()[%thread_id_x]
// CHECK-DAG: [[r8:%.+]] = affine.apply #[[below]]()[%thread_id_x]
// CHECK: [[e0:%.+]] = memref.load [[SA]][%c0, %c0, [[r]], %{{.+}}]
// CHECK-NEXT: [[e1:%.+]] = memref.load [[SA]][%c0, %c0, [[r8]], %{{.+}}]
// Four elements along k further, in the unit beside it.
// CHECK-NEXT: [[p:%.+]] = affine.apply #[[place]]()[%thread_id_x]
// CHECK-NEXT: [[u:%.+]] = arith.xori [[p]], %c1
// CHECK-NEXT: [[c:%.+]] = affine.apply #[[column]]()[[[u]], %thread_id_x]
// CHECK-NEXT: [[e2:%.+]] = memref.load [[SA]][%c0, %c0, [[r]], [[c]]]
// CHECK-NEXT: [[e3:%.+]] = memref.load [[SA]][%c0, %c0, [[r8]], [[c]]]
// CHECK-COUNT-12: memref.load [[SA]]
// CHECK-NOT: memref.load
// CHECK: [[x:%.+]] = vector.from_elements [[e0]], [[e1]], [[e2]], [[e3]], {{.*}} : vector<1x4x4xf32>
// Numbers that lose bits by a factor of 2^-24, or whose sum is infinite, need more ops; a warp votes whether one has any.
// CHECK-NEXT: [[scaled:%.+]] = arith.mulf [[x]], %{{.+}} : vector<1x4x4xf32>
// CHECK-NEXT: math.fma [[scaled]], %{{.+}}, [[x]] : vector<1x4x4xf32>
// CHECK: [[size:%.+]] = math.absf [[x]]
// CHECK: [[total:%.+]] = vector.reduction <add>, %{{.+}} : vector<4xf32> into f32
// CHECK-NEXT: [[mine:%.+]] = arith.cmpf oeq, [[total]], %{{.+}} : f32
// CHECK-NEXT: [[all:%.+]] = nvvm.vote.sync all %c-1_i32, [[mine]] -> i1
// CHECK-NEXT: [[A:%.+]]:2 = scf.if [[all]] -> (vector<1x4x4xf32>, vector<1x4x4xf32>) {
// CHECK-NEXT: [[bits:%.+]] = arith.bitcast [[x]] : vector<1x4x4xf32> to vector<1x4x4xi32>
// CHECK-NEXT: [[near:%.+]] = arith.addi [[bits]], %{{.+}} : vector<1x4x4xi32>
// CHECK-NEXT: [[cut:%.+]] = arith.andi [[near]], %{{.+}} : vector<1x4x4xi32>
// CHECK-NEXT: [[large:%.+]] = arith.bitcast [[cut]] : vector<1x4x4xi32> to vector<1x4x4xf32>
// CHECK-NEXT: [[small:%.+]] = arith.subf [[x]], [[large]]
// CHECK-NEXT: scf.yield [[large]], [[small]]
// CHECK-NEXT: } else {
// CHECK-NEXT: arith.cmpf oge, [[size]]
// CHECK-COUNT-2: arith.cmpf oge, [[size]]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: "tc.warpgroup_mma_3xtf32_registers"([[A]]#0, [[DB1]], [[SUMS]], [[A]]#1, [[DB2]])
// CHECK-NOT: nvgpu.warpgroup.mma %
// CHECK: // -----
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!stages = memref<1x1x64x32xf32, #gpu.address_space<workgroup>>
!box = memref<64x32xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
!tile = memref<1x64x32xf32, strided<[2048, 32, 1]>, #gpu.address_space<workgroup>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
!desc_a = !nvgpu.warpgroup.descriptor<tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
!desc_b = !nvgpu.warpgroup.descriptor<tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
func.func @as_it_is(%A: memref<64x32xf32>, %B: memref<32x64xf32>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c16384 = arith.constant 16384 : index
  %turned = memref.transpose %B (i, j) -> (j, i) : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
  %w = memref.alloc() {workspace} : memref<64x64xf32>
  %v = memref.subview %w[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1]>>
  memref.copy %turned, %v {workspace} : memref<64x32xf32, strided<[1, 64]>> to memref<64x32xf32, strided<[64, 1]>>
  %a_any = memref.cast %A : memref<64x32xf32> to memref<*xf32>
  %a_map = nvgpu.tma.create.descriptor %a_any box[%c64, %c32] : memref<*xf32> -> !map
  %b_any = memref.cast %v : memref<64x32xf32, strided<[64, 1]>> to memref<*xf32>
  %b_map = nvgpu.tma.create.descriptor %b_any box[%c64, %c32] : memref<*xf32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %a = memref.alloc() {operand_a} : !stages
    %b = memref.alloc() {operand_b} : !stages
    %tid = gpu.thread_id x
    %leads = arith.cmpi eq, %tid, %c0 : index
    %full = nvgpu.mbarrier.create -> !group
    scf.if %leads {
      nvgpu.tma.prefetch.descriptor %a_map : !map
      nvgpu.tma.prefetch.descriptor %b_map : !map
    }
    gpu.barrier
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c16384 : !group
      %a_box = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a_box : !map, !group -> !box
      %b_box = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b_box : !map, !group -> !box
    }
    %a_tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile
    %b_tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    %da = nvgpu.warpgroup.generate.descriptor %a_tile, %a_map : !tile, !map -> <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
    %db = nvgpu.warpgroup.generate.descriptor %b_tile, %b_map : !tile, !map -> <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
    %d = nvgpu.warpgroup.mma %da, %db, %zero {waitGroup = 0 : i64} : <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>, <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    %c_tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    nvgpu.warpgroup.mma.store %d, %c_tile : <fragmented = vector<64x64xf32>> to memref<64x64xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

// A whose rows lie along m is loaded from where it is, two boxes of 32 rows, and the copy to its transpose goes. A thread
// of each warp releases the stage.
// CHECK-DAG: #[[unit:.+]] = affine_map<()[s0] -> ((((s0 mod 128) floordiv 32) * 4 + ((s0 mod 32) floordiv 4) floordiv 4) mod 8)>
// CHECK-DAG: #[[step:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// CHECK-LABEL: func.func @along_m(
// CHECK-NOT: memref.transpose %A
// CHECK-NOT: memref.copy
// CHECK: [[CA:%.+]] = memref.cast %A : memref<32x64xf32> to memref<*xf32>
// CHECK-NEXT: [[MA:%.+]] = nvgpu.tma.create.descriptor [[CA]] box[%c32, %c32]
// CHECK: [[SA:%.+]] = memref.alloc() {operand_a, other_rows} : memref<1x2x32x32xf32
// CHECK: [[FULL:%.+]] = nvgpu.mbarrier.create
// CHECK-NEXT: [[EMPTY:%.+]] = nvgpu.mbarrier.create
// CHECK: nvgpu.mbarrier.init [[FULL]][%c0], %c1
// CHECK-NEXT: nvgpu.mbarrier.init [[EMPTY]][%c0], %c4
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// CHECK: nvgpu.tma.async.load [[MA]][%c0, %c0]
// CHECK: nvgpu.tma.async.load [[MA]][%c32, %c0]
// CHECK-DAG: [[k:%.+]] = affine.apply #[[step]]()[%thread_id_x]
// CHECK-DAG: [[u:%.+]] = affine.apply #[[unit]]()[%thread_id_x]
// CHECK: arith.xori [[u]], [[k]]
// CHECK: memref.load [[SA]][%c0, %{{.+}}, [[k]], %{{.+}}]
// CHECK: "tc.warpgroup_mma_3xtf32_registers"
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvgpu.mbarrier.arrive [[EMPTY]]
// CHECK: // -----
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!stages = memref<1x1x64x32xf32, #gpu.address_space<workgroup>>
!box = memref<64x32xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
!tile = memref<1x64x32xf32, strided<[2048, 32, 1]>, #gpu.address_space<workgroup>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
!desc_a = !nvgpu.warpgroup.descriptor<tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
!desc_b = !nvgpu.warpgroup.descriptor<tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
func.func @along_m(%A: memref<32x64xf32>, %B: memref<32x64xf32>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c16384 = arith.constant 16384 : index
  %turned = memref.transpose %B (i, j) -> (j, i) : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
  %w = memref.alloc() {workspace} : memref<64x64xf32>
  %v = memref.subview %w[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1]>>
  memref.copy %turned, %v {workspace} : memref<64x32xf32, strided<[1, 64]>> to memref<64x32xf32, strided<[64, 1]>>
  %a_turned = memref.transpose %A (i, j) -> (j, i) : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
  %aw = memref.alloc() {workspace} : memref<64x64xf32>
  %av = memref.subview %aw[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1]>>
  memref.copy %a_turned, %av {workspace} : memref<64x32xf32, strided<[1, 64]>> to memref<64x32xf32, strided<[64, 1]>>
  %a_any = memref.cast %av : memref<64x32xf32, strided<[64, 1]>> to memref<*xf32>
  %a_map = nvgpu.tma.create.descriptor %a_any box[%c64, %c32] : memref<*xf32> -> !map
  %b_any = memref.cast %v : memref<64x32xf32, strided<[64, 1]>> to memref<*xf32>
  %b_map = nvgpu.tma.create.descriptor %b_any box[%c64, %c32] : memref<*xf32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %a = memref.alloc() {operand_a} : !stages
    %b = memref.alloc() {operand_b} : !stages
    %tid = gpu.thread_id x
    %leads = arith.cmpi eq, %tid, %c0 : index
    %full = nvgpu.mbarrier.create -> !group
    %empty = nvgpu.mbarrier.create -> !group
    scf.if %leads {
      nvgpu.mbarrier.init %full[%c0], %c1 : !group
      nvgpu.mbarrier.init %empty[%c0], %c1 : !group
      nvgpu.tma.prefetch.descriptor %a_map : !map
      nvgpu.tma.prefetch.descriptor %b_map : !map
    }
    gpu.barrier
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c16384 : !group
      %a_box = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a_box : !map, !group -> !box
      %b_box = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %b_box : !map, !group -> !box
    }
    %a_tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile
    %b_tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    %da = nvgpu.warpgroup.generate.descriptor %a_tile, %a_map : !tile, !map -> <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
    %db = nvgpu.warpgroup.generate.descriptor %b_tile, %b_map : !tile, !map -> <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
    %d = nvgpu.warpgroup.mma %da, %db, %zero {waitGroup = 0 : i64} : <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>, <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    %first = arith.cmpi eq, %tid, %c0 : index
    scf.if %first {
      %token = nvgpu.mbarrier.arrive %empty[%c0] : !group -> !nvgpu.mbarrier.token
    }
    %c_tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    nvgpu.warpgroup.mma.store %d, %c_tile : <fragmented = vector<64x64xf32>> to memref<64x64xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

func.func @of_f32(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>)
  return
}
func.func @other_type(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x16xf16, #gpu.address_space<workgroup>>>, %b: !nvgpu.warpgroup.descriptor<tensor = memref<16x64xf16, #gpu.address_space<workgroup>>>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    // expected-error@+1 {{tc.split_a_into_tf32: expected operands of tf32, not of f16}}
    %d = nvgpu.warpgroup.mma %a, %b, %zero : <tensor = memref<64x16xf16, #gpu.address_space<workgroup>>>, <tensor = memref<16x64xf16, #gpu.address_space<workgroup>>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    gpu.terminator
  }
  return
}

// -----

// One descriptor for A and B, of which that of B is to describe a part.
!both = !nvgpu.tensormap.descriptor<tensor = memref<1x64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!one = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!tiles = memref<1x1x64x32xf32, #gpu.address_space<workgroup>>
!tile_of_batch = memref<1x64x32xf32, strided<[2048, 32, 1]>, #gpu.address_space<workgroup>>
func.func @one_batch(%A: memref<2x64x32xf32>, %C: memref<2x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %any = memref.cast %A : memref<2x64x32xf32> to memref<*xf32>
  %map = nvgpu.tma.create.descriptor %any box[%c1, %c64, %c32] : memref<*xf32> -> !both
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %a = memref.alloc() {operand_a} : !tiles
    %b = memref.alloc() {operand_b} : !tiles
    %tid = gpu.thread_id x
    %leads = arith.cmpi eq, %tid, %c0 : index
    %full = nvgpu.mbarrier.create -> !one
    %a_tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !tiles to !tile_of_batch
    %b_tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !tiles to !tile_of_batch
    scf.if %leads {
      nvgpu.tma.async.load %map[%c0, %c0, %c0], %full[%c0] to %a_tile : !both, !one -> !tile_of_batch
      nvgpu.tma.async.load %map[%c0, %c0, %c0], %full[%c0] to %b_tile : !both, !one -> !tile_of_batch
    }
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    %da = nvgpu.warpgroup.generate.descriptor %a_tile, %map : !tile_of_batch, !both -> <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>
    %db = nvgpu.warpgroup.generate.descriptor %b_tile, %map : !tile_of_batch, !both -> <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
    // expected-error@+1 {{tc.split_a_into_tf32: expected A and B of a batch in buffers of their own}}
    %d = nvgpu.warpgroup.mma %da, %db, %zero {waitGroup = 0 : i64} : <tensor = memref<64x32xtf32, #gpu.address_space<workgroup>>>, <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    gpu.terminator
  }
  return
}

// -----

// A matmul that `convert_to_wgmma` has not converted.
func.func @no_product(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %c: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.split_a_into_tf32: expected one warpgroup MMA, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c1, %ny = %c1, %nz = %c1) {
    linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x64xf32>) outs(%c : memref<64x64xf32>)
    gpu.terminator
  }
  return
}
