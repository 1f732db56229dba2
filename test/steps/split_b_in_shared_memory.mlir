// Tiles of the unmodified B are loaded, and the threads of the MMA split them in shared memory; no kernel precedes.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step split_b_in_shared_memory --set split_f32=shared --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s
// RUN: sed -n '/^.. An N-major B/,/^}/s/nx = %%c128/nx = %%c32/;/^.. An N-major B/,/^}/p' %s > %t.mlir
// RUN: %refused 1 %stepladder-opt %t.mlir --pipeline wgmma --step split_b_in_shared_memory --set split_f32=shared \
// RUN:   | FileCheck %s --check-prefix=LARGE

// LARGE: a tile of B of 64 x 32 elements, which 32 threads transpose: expected at most 32 elements for each thread

// A vector of 4 elements for each thread, in the order of their addresses, and a second one for 64 of them.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (s0 floordiv 8)>
// CHECK-DAG: #[[column:.+]] = affine_map<()[s0] -> (s0 * 4 - (s0 floordiv 8) * 32)>
// CHECK-LABEL: func.func @as_it_is(
// CHECK-SAME: %A: memref<64x32xf32>, %B: memref<24x32xf32>
// CHECK-NOT: workspace
// CHECK-NOT: linalg.generic
// CHECK: [[CB:%.+]] = memref.cast %B : memref<24x32xf32> to memref<*xf32>
// CHECK-NEXT: [[MB:%.+]] = nvgpu.tma.create.descriptor [[CB]]
// CHECK-NOT: nvgpu.tma.create.descriptor
// CHECK: gpu.launch
// CHECK: [[B1:%.+]] = memref.alloc() {operand_b} : memref<1x1x24x32xf32
// CHECK: [[B2:%.+]] = memref.alloc() {operand_b} : memref<1x1x24x32xf32
// CHECK: nvgpu.tma.prefetch.descriptor [[MB]]
// CHECK-NOT: nvgpu.tma.prefetch.descriptor
// A tile of A and one of B: 8192 + 3072 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c11264
// CHECK: nvgpu.tma.async.load %{{.+}}[%c0, %c0]
// CHECK: nvgpu.tma.async.load [[MB]][%c0, %c0]
// CHECK-NOT: nvgpu.tma.async.load
// CHECK-DAG: [[D1:%.+]] = nvgpu.warpgroup.generate.descriptor {{.*}}, [[MB]]
// CHECK-DAG: [[D2:%.+]] = nvgpu.warpgroup.generate.descriptor {{.*}}, [[MB]]
// The loads of A's elements come first.
// CHECK: [[a:%.+]] = memref.load
// CHECK: [[r:%.+]] = affine.apply #[[row]]()[%[[thread:.+]]]
// CHECK-NEXT: [[c:%.+]] = affine.apply #[[column]]()[%[[thread]]]
// CHECK: [[r2:%.+]] = affine.apply
// CHECK: [[second:%.+]] = arith.cmpi ult, %[[thread]], %c64
// CHECK-NEXT: [[v:%.+]] = vector.load [[B1]][%c0, %c0, [[r]], [[c]]] {alignment = 16 : i64}
// CHECK-NEXT: [[v2:%.+]] = scf.if [[second]] -> (vector<4xf32>) {
// CHECK-NEXT: vector.load [[B1]][%c0, %c0, [[r2]], {{.*}}]
// CHECK: arith.bitcast {{.*}} : vector<2x4xf32> to vector<2x4xi32>
// CHECK: [[large:%.+]] = arith.bitcast {{.*}} : vector<2x4xi32> to vector<2x4xf32>
// CHECK-NEXT: [[small:%.+]] = arith.subf {{.*}}, [[large]]
// CHECK-NEXT: [[l:%.+]] = vector.extract [[large]][0]
// CHECK-NEXT: [[s:%.+]] = vector.extract [[small]][0]
// CHECK-NEXT: vector.store [[l]], [[B1]][%c0, %c0, [[r]], [[c]]]
// CHECK-NEXT: vector.store [[s]], [[B2]][%c0, %c0, [[r]], [[c]]]
// CHECK: scf.if [[second]] {
// CHECK-COUNT-2: vector.store
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NEXT: nvvm.barrier id = %c8_i32 number_of_threads = %c128_i32
// CHECK: vector.broadcast [[a]]
// CHECK: "tc.warpgroup_mma_3xtf32_registers"({{.*}}, [[D1]], {{.*}}, [[D2]])
// CHECK: // -----
!map_a = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!map_b = !nvgpu.tensormap.descriptor<tensor = memref<24x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!stages_a = memref<1x1x64x32xf32, #gpu.address_space<workgroup>>
!stages_b = memref<1x1x24x32xf32, #gpu.address_space<workgroup>>
!box_a = memref<64x32xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
!box_b = memref<24x32xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
!tile_b = memref<1x24x32xf32, strided<[768, 32, 1]>, #gpu.address_space<workgroup>>
!part = memref<24x32xf32, strided<[64, 1]>>
!desc_b = !nvgpu.warpgroup.descriptor<tensor = memref<32x24xtf32, #gpu.address_space<workgroup>>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x24xf32>>
!registers = vector<1x4x4xf32>
#same = affine_map<(i, k) -> (i, k)>
func.func @as_it_is(%A: memref<64x32xf32>, %B: memref<24x32xf32>, %C: memref<64x24xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c14336 = arith.constant 14336 : index
  %w1 = memref.alloc() {workspace} : memref<24x64xf32>
  %b1 = memref.subview %w1[0, 0] [24, 32] [1, 1] : memref<24x64xf32> to !part
  %w2 = memref.alloc() {workspace} : memref<24x64xf32>
  %b2 = memref.subview %w2[0, 0] [24, 32] [1, 1] : memref<24x64xf32> to !part
  linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%B : memref<24x32xf32>) outs(%b1, %b2 : !part, !part) attrs = {workspace} {
  ^bb0(%x: f32, %o1: f32, %o2: f32):
    %rest = arith.subf %x, %x : f32
    linalg.yield %x, %rest : f32, f32
  }
  %a_any = memref.cast %A : memref<64x32xf32> to memref<*xf32>
  %a_map = nvgpu.tma.create.descriptor %a_any box[%c64, %c32] : memref<*xf32> -> !map_a
  %b1_any = memref.cast %b1 : !part to memref<*xf32>
  %b2_any = memref.cast %b2 : !part to memref<*xf32>
  %b1_map = nvgpu.tma.create.descriptor %b1_any box[%c24, %c32] : memref<*xf32> -> !map_b
  %b2_map = nvgpu.tma.create.descriptor %b2_any box[%c24, %c32] : memref<*xf32> -> !map_b
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %a = memref.alloc() {operand_a} : !stages_a
    %large = memref.alloc() {operand_b} : !stages_b
    %small = memref.alloc() {operand_b} : !stages_b
    %tid = gpu.thread_id x
    %leads = arith.cmpi eq, %tid, %c0 : index
    %full = nvgpu.mbarrier.create -> !group
    scf.if %leads {
      nvgpu.tma.prefetch.descriptor %b1_map : !map_b
      nvgpu.tma.prefetch.descriptor %b2_map : !map_b
    }
    gpu.barrier
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c14336 : !group
      %a_box = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages_a to !box_a
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a_box : !map_a, !group -> !box_a
      %large_box = memref.subview %large[0, 0, 0, 0] [1, 1, 24, 32] [1, 1, 1, 1] : !stages_b to !box_b
      nvgpu.tma.async.load %b1_map[%c0, %c0], %full[%c0] to %large_box : !map_b, !group -> !box_b
      %small_box = memref.subview %small[0, 0, 0, 0] [1, 1, 24, 32] [1, 1, 1, 1] : !stages_b to !box_b
      nvgpu.tma.async.load %b2_map[%c0, %c0], %full[%c0] to %small_box : !map_b, !group -> !box_b
    }
    %large_tile = memref.subview %large[0, 0, 0, 0] [1, 1, 24, 32] [1, 1, 1, 1] : !stages_b to !tile_b
    %small_tile = memref.subview %small[0, 0, 0, 0] [1, 1, 24, 32] [1, 1, 1, 1] : !stages_b to !tile_b
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x24xf32>>
    %d1 = nvgpu.warpgroup.generate.descriptor %large_tile, %b1_map : !tile_b, !map_b -> <tensor = memref<32x24xtf32, #gpu.address_space<workgroup>>>
    %d2 = nvgpu.warpgroup.generate.descriptor %small_tile, %b2_map : !tile_b, !map_b -> <tensor = memref<32x24xtf32, #gpu.address_space<workgroup>>>
    %element = memref.load %a[%c0, %c0, %c0, %c0] : !stages_a
    %elements = vector.broadcast %element : f32 to !registers
    %d = "tc.warpgroup_mma_3xtf32_registers"(%elements, %d1, %zero, %elements, %d2) : (!registers, !desc_b, !sums, !registers, !desc_b) -> !sums
    %c_tile = memref.alloc() {operand_c} : memref<64x24xf32, #gpu.address_space<workgroup>>
    nvgpu.warpgroup.mma.store %d, %c_tile : <fragmented = vector<64x24xf32>> to memref<64x24xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

// An N-major B: a box has 32 steps of k by 32 columns, and the threads store its parts transposed.
//
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %A: memref<64x32xf32>, %B: memref<32x64xf32>
// CHECK-NOT: workspace
// CHECK-NOT: memref.transpose
// CHECK: [[CB:%.+]] = memref.cast %B : memref<32x64xf32> to memref<*xf32>
// CHECK-NEXT: [[MB:%.+]] = nvgpu.tma.create.descriptor [[CB]] box[%c32, %c32]
// CHECK: gpu.launch
// CHECK: [[B:%.+]] = memref.alloc() {operand_b, other_rows} : memref<1x2x32x32xf32
// CHECK: [[B2:%.+]] = memref.alloc() {operand_b} : memref<1x1x64x32xf32
// A tile of A and one of B: 8192 + 8192 bytes.
// CHECK: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c16384
// CHECK: nvgpu.tma.async.load %{{.+}}[%c0, %c0]
// CHECK: nvgpu.tma.async.load [[MB]][%c0, %c0], {{.*}} to [[first:%.+]] :
// CHECK: nvgpu.tma.async.load [[MB]][%c32, %c0]
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: [[flat:%.+]] = memref.collapse_shape
// CHECK: [[large:%.+]] = memref.expand_shape [[flat]] {{.*}} into memref<1x64x32xf32
// CHECK: [[small:%.+]] = memref.subview [[B2]][0, 0, 0, 0] [1, 1, 64, 32]
// CHECK: [[D1:%.+]] = "tc.warpgroup_describe_tile"({{.*}}) {swizzle = 128 : i64}
// CHECK-NEXT: [[D2:%.+]] = "tc.warpgroup_describe_tile"({{.*}}) {swizzle = 128 : i64}
// Four steps of k of a column, whose units are permuted by k; a thread has four such vectors.
// CHECK-COUNT-16: memref.load [[B]][%c0, {{.*}}]
// CHECK: nvvm.barrier id = %c8_i32 number_of_threads = %c128_i32
// CHECK: arith.bitcast {{.*}} : vector<4x4xf32> to vector<4x4xi32>
// CHECK: vector.store {{.*}}, [[large]][[[box:%.+]], [[column:%.+]], [[unit:%.+]]] {alignment = 16 : i64}
// CHECK-NEXT: vector.store {{.*}}, [[small]][[[box]], [[column]], [[unit]]]
// CHECK-COUNT-6: vector.store
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NEXT: nvvm.barrier id = %c8_i32 number_of_threads = %c128_i32
// CHECK: "tc.warpgroup_mma_3xtf32_registers"({{.*}}, [[D1]], {{.*}}, [[D2]])
// CHECK: // -----
!map_a = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!map_b = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!stages = memref<1x1x64x32xf32, #gpu.address_space<workgroup>>
!box = memref<64x32xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
!tile_b = memref<1x64x32xf32, strided<[2048, 32, 1]>, #gpu.address_space<workgroup>>
!part = memref<64x32xf32, strided<[64, 1]>>
!desc_b = !nvgpu.warpgroup.descriptor<tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
!registers = vector<1x4x4xf32>
#same = affine_map<(i, k) -> (i, k)>
func.func @transposed(%A: memref<64x32xf32>, %B: memref<32x64xf32>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c24576 = arith.constant 24576 : index
  %b_t = memref.transpose %B (k, n) -> (n, k) : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
  %w1 = memref.alloc() {workspace} : memref<64x64xf32>
  %b1 = memref.subview %w1[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to !part
  %w2 = memref.alloc() {workspace} : memref<64x64xf32>
  %b2 = memref.subview %w2[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to !part
  linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%b_t : memref<64x32xf32, strided<[1, 64]>>) outs(%b1, %b2 : !part, !part) attrs = {workspace} {
  ^bb0(%x: f32, %o1: f32, %o2: f32):
    %rest = arith.subf %x, %x : f32
    linalg.yield %x, %rest : f32, f32
  }
  %a_any = memref.cast %A : memref<64x32xf32> to memref<*xf32>
  %a_map = nvgpu.tma.create.descriptor %a_any box[%c64, %c32] : memref<*xf32> -> !map_a
  %b1_any = memref.cast %b1 : !part to memref<*xf32>
  %b2_any = memref.cast %b2 : !part to memref<*xf32>
  %b1_map = nvgpu.tma.create.descriptor %b1_any box[%c64, %c32] : memref<*xf32> -> !map_b
  %b2_map = nvgpu.tma.create.descriptor %b2_any box[%c64, %c32] : memref<*xf32> -> !map_b
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    %a = memref.alloc() {operand_a} : !stages
    %large = memref.alloc() {operand_b} : !stages
    %small = memref.alloc() {operand_b} : !stages
    %tid = gpu.thread_id x
    %leads = arith.cmpi eq, %tid, %c0 : index
    %full = nvgpu.mbarrier.create -> !group
    scf.if %leads {
      nvgpu.tma.prefetch.descriptor %b1_map : !map_b
      nvgpu.tma.prefetch.descriptor %b2_map : !map_b
    }
    gpu.barrier
    scf.if %leads {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %c24576 : !group
      %a_box = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %a_box : !map_a, !group -> !box
      %large_box = memref.subview %large[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %b1_map[%c0, %c0], %full[%c0] to %large_box : !map_b, !group -> !box
      %small_box = memref.subview %small[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !box
      nvgpu.tma.async.load %b2_map[%c0, %c0], %full[%c0] to %small_box : !map_b, !group -> !box
    }
    %large_tile = memref.subview %large[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile_b
    %small_tile = memref.subview %small[0, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1] : !stages to !tile_b
    %zero = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    %d1 = nvgpu.warpgroup.generate.descriptor %large_tile, %b1_map : !tile_b, !map_b -> <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
    %d2 = nvgpu.warpgroup.generate.descriptor %small_tile, %b2_map : !tile_b, !map_b -> <tensor = memref<32x64xtf32, #gpu.address_space<workgroup>>>
    %element = memref.load %a[%c0, %c0, %c0, %c0] : !stages
    %elements = vector.broadcast %element : f32 to !registers
    %d = "tc.warpgroup_mma_3xtf32_registers"(%elements, %d1, %zero, %elements, %d2) : (!registers, !desc_b, !sums, !registers, !desc_b) -> !sums
    %c_tile = memref.alloc() {operand_c} : memref<64x64xf32, #gpu.address_space<workgroup>>
    nvgpu.warpgroup.mma.store %d, %c_tile : <fragmented = vector<64x64xf32>> to memref<64x64xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

// Parts that no step has created.
func.func @of_f32(%a: memref<64x32xf32>, %b: memref<64x32xf32>, %c: memref<64x64xf32>) {
  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
    affine_map<(i, j, k) -> (i, j)>] ins(%a, %b : memref<64x32xf32>, memref<64x32xf32>) outs(%c : memref<64x64xf32>)
  return
}
func.func @no_parts() {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  // expected-error@+1 {{tc.split_b_in_shared_memory: expected one MMA of two parts with A in registers, found 0}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%nx = %c128, %ny = %c1, %nz = %c1) {
    gpu.terminator
  }
  return
}
