// A is computed in registers from what TMA loads in its place, for one wgmma each 16 steps of k.
//
// RUN: %stepladder-opt %s --pipeline wgmma --step prepare_in_registers --set producers=registers --split-input-file \
// RUN:   --verify-diagnostics | FileCheck %s

// Weights of i8, with a scale for each of 64 rows: rows of 32 bytes, swizzled.
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4)>
// CHECK-DAG: #[[below:.+]] = affine_map<()[s0] -> (((s0 mod 128) floordiv 32) * 16 + (s0 mod 32) floordiv 4 + 8)>
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @scales(
// CHECK-DAG: [[less:%.+]] = arith.constant dense<1.152000e+03> : vector<2xf16>
// CHECK-DAG: [[above:%.+]] = arith.constant dense<25600> : vector<2xi16>
// CHECK-DAG: [[signs:%.+]] = arith.constant dense<128> : vector<2xi16>
// CHECK-NOT: call
// CHECK: [[q_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c32]
// CHECK-SAME: -> <tensor = memref<64x32xi8, 3>, swizzle = swizzle_32b
// CHECK: [[Q:%.+]] = memref.alloc() {operand_a} : memref<2x1x64x32xi8
// A thread of each warp releases a stage.
// CHECK: nvgpu.mbarrier.init [[full:%.+]][%c0], %c1
// CHECK-NEXT: nvgpu.mbarrier.init [[empty:%.+]][%c0], %c4
// What is the same in all steps is loaded before the loop.
// CHECK-DAG: [[r:%.+]] = affine.apply #[[row]]()[%thread_id_x]
// CHECK-DAG: [[r8:%.+]] = affine.apply #[[below]]()[%thread_id_x]
// CHECK-DAG: [[scale:%.+]] = memref.load %S[[[r]]] : memref<64xf16>
// CHECK-DAG: [[scale8:%.+]] = memref.load %S[[[r8]]] : memref<64xf16>
// CHECK: scf.for [[k:%.+]] = %c0 to %c128 step %c32 iter_args([[stage:%.+]] = %c0, [[acc:%.+]] = %{{.*}})
// 64 x 32 of i8 and 32 x 8 of f16.
// CHECK: nvgpu.mbarrier.arrive.expect_tx [[full]][[[stage]]], %c2560
// CHECK: nvgpu.tma.async.load [[q_map]][[[k]], %c0], [[full]][[[stage]]]
// CHECK: nvgpu.mbarrier.try_wait.parity [[full]][[[stage]]]
// All reads come before the first product.
// CHECK-COUNT-8: vector.load [[Q]][[[stage]], %c0, {{.*}}, {{.*}}] {alignment = 2 : i64} : memref<2x1x64x32xi8, {{.*}}>, vector<2xi8>
// CHECK-NOT: vector.load
// The registers of this product were read by the first of two in the step before.
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// Bytes i + 128 in the bits of the f16 1024 + i + 128, less 1152, times the scale of the row.
// CHECK: [[word:%.+]] = arith.extui %{{.*}} : i16 to i32
// CHECK-NEXT: [[moved:%.+]] = arith.shli [[word]], %c8_i32
// CHECK-NEXT: [[both:%.+]] = arith.ori [[word]], [[moved]]
// CHECK-NEXT: arith.andi [[both]], %c16711935_i32
// CHECK: [[flipped:%.+]] = arith.xori %{{.*}}, [[signs]] : vector<2xi16>
// CHECK-NEXT: [[bits:%.+]] = arith.ori [[flipped]], [[above]] : vector<2xi16>
// CHECK-NEXT: [[held:%.+]] = vector.bitcast [[bits]] : vector<2xi16> to vector<2xf16>
// CHECK-NEXT: [[number:%.+]] = arith.subf [[held]], [[less]] : vector<2xf16>
// CHECK-NEXT: [[scales:%.+]] = vector.broadcast [[scale]] : f16 to vector<2xf16>
// CHECK-NEXT: [[x:%.+]] = arith.mulf [[number]], [[scales]] : vector<2xf16>
// CHECK: [[e:%.+]]:2 = vector.to_elements [[x]] : vector<2xf16>
// CHECK: [[a:%.+]] = vector.from_elements [[e]]#0, [[e]]#1, {{.*}} : vector<1x4x2xf16>
// CHECK-NEXT: [[first:%.+]] = "tc.warpgroup_mma_registers"([[a]], [[b:%.+]], [[acc]]) {step = 0 : i64}
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: "tc.warpgroup_mma_registers"(%{{.*}}, [[b]], [[first]]) {{.*}}step = 1 : i64
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 2
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvgpu.mbarrier.arrive [[empty]]
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#view = strided<[32, 1], offset: ?>
#stage = strided<[2048, 32, 1], offset: ?>
#b_stage = strided<[256, 32, 1], offset: ?>
#whole = affine_map<(i, j) -> (i, j)>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func private @producer(%q: memref<64x128xi8>, %s: memref<64xf16>, %w: memref<64x128xf16>) attributes {producer} {
  linalg.generic {indexing_maps = [#whole, affine_map<(i, j) -> (i)>, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : memref<64x128xi8>, memref<64xf16>) outs(%w : memref<64x128xf16>) {
  ^bb0(%in: i8, %scale: f16, %out: f16):
    %x = arith.sitofp %in : i8 to f16
    %y = arith.mulf %x, %scale : f16
    linalg.yield %y : f16
  }
  return
}
func.func @scales(%Q: memref<64x128xi8>, %S: memref<64xf16>, %B: memref<8x128xf16>, %C: memref<64x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 4608 : index
  %ticks = arith.constant 10000000 : index
  %false = arith.constant false
  %w = memref.alloc() {whole, workspace} : memref<64x128xf16>
  call @producer(%Q, %S, %w) {producer} : (memref<64x128xi8>, memref<64xf16>, memref<64x128xf16>) -> ()
  %w_cast = memref.cast %w : memref<64x128xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %w_cast box[%c64, %c32] : memref<*xf16> -> !a_map
  %b_cast = memref.cast %B : memref<8x128xf16> to memref<*xf16>
  %b_map = nvgpu.tma.create.descriptor %b_cast box[%c8, %c32] : memref<*xf16> -> !b_map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x1x64x32xf16, #space>
    %b = memref.alloc() {operand_b} : memref<2x1x8x32xf16, #space>
    %thread = gpu.thread_id x
    %leader = arith.cmpi eq, %thread, %c0 : index
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvgpu.mbarrier.init %empty[%c0], %c1 : !barriers
    }
    gpu.barrier
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %loop:2 = scf.for %k = %c0 to %c128 step %c32 iter_args(%stage = %c0, %acc = %zero) -> (index, !sums) {
      scf.if %leader {
        nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : !barriers
        %a_box = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
          : memref<2x1x64x32xf16, #space> to memref<64x32xf16, #view, #space>
        nvgpu.tma.async.load %a_map[%k, %c0], %full[%stage] to %a_box : !a_map, !barriers -> memref<64x32xf16, #view, #space>
        %b_box = memref.subview %b[%stage, 0, 0, 0] [1, 1, 8, 32] [1, 1, 1, 1]
          : memref<2x1x8x32xf16, #space> to memref<8x32xf16, #view, #space>
        nvgpu.tma.async.load %b_map[%k, %c0], %full[%stage] to %b_box : !b_map, !barriers -> memref<8x32xf16, #view, #space>
      }
      %a_tile = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
        : memref<2x1x64x32xf16, #space> to memref<1x64x32xf16, #stage, #space>
      %b_tile = memref.subview %b[%stage, 0, 0, 0] [1, 1, 8, 32] [1, 1, 1, 1]
        : memref<2x1x8x32xf16, #space> to memref<1x8x32xf16, #b_stage, #space>
      nvgpu.mbarrier.try_wait.parity %full[%stage], %false, %ticks : !barriers
      %a_desc = "tc.warpgroup_generate_descriptor"(%a_tile, %a_map) : (memref<1x64x32xf16, #stage, #space>, !a_map)
        -> !nvgpu.warpgroup.descriptor<tensor = memref<64x32xf16, #space>>
      %b_desc = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<1x8x32xf16, #b_stage, #space>, !b_map)
        -> !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>
      %next = nvgpu.warpgroup.mma %a_desc, %b_desc, %acc : <tensor = memref<64x32xf16, #space>>,
        <tensor = memref<32x8xf16, #space>>, <fragmented = vector<64x8xf32>> -> <fragmented = vector<64x8xf32>>
      %first = arith.cmpi eq, %thread, %c0 : index
      %later = arith.cmpi ne, %k, %c0 : index
      %releases = arith.andi %first, %later : i1
      scf.if %releases {
        %token = nvgpu.mbarrier.arrive %empty[%stage] : !barriers -> !nvgpu.mbarrier.token
      }
      %other = arith.subi %c1, %stage : index
      scf.yield %other, %next : index, !sums
    }
    "tc.warpgroup_mma_store"(%loop#1, %C) : (!sums, memref<64x8xf32>) -> ()
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
#view = strided<[32, 1], offset: ?>
#stage = strided<[2048, 32, 1], offset: ?>
#b_stage = strided<[256, 32, 1], offset: ?>
#halves = affine_map<(i, h, j) -> (i, h, j)>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
func.func private @producer(%q: memref<2x64x64xi8>, %s: memref<64xf16>, %w: memref<64x128xf16>) attributes {producer} {
  %halves = memref.expand_shape %w [[0], [1, 2]] output_shape [64, 2, 64] : memref<64x128xf16> into memref<64x2x64xf16>
  linalg.generic {indexing_maps = [affine_map<(i, h, j) -> (h, i, j)>, affine_map<(i, h, j) -> (i)>, #halves],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%q, %s : memref<2x64x64xi8>, memref<64xf16>) outs(%halves : memref<64x2x64xf16>) {
  ^bb0(%in: i8, %scale: f16, %out: f16):
    %x = arith.sitofp %in : i8 to f16
    %y = arith.mulf %x, %scale : f16
    linalg.yield %y : f16
  }
  return
}
func.func @other_order(%Q: memref<2x64x64xi8>, %S: memref<64xf16>, %B: memref<8x128xf16>, %C: memref<64x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 4608 : index
  %ticks = arith.constant 10000000 : index
  %false = arith.constant false
  %w = memref.alloc() {whole, workspace} : memref<64x128xf16>
  // expected-error @below {{a register operand is computed from a source in an order other than its rows or columns}}
  call @producer(%Q, %S, %w) {producer} : (memref<2x64x64xi8>, memref<64xf16>, memref<64x128xf16>) -> ()
  %w_cast = memref.cast %w : memref<64x128xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %w_cast box[%c64, %c32] : memref<*xf16> -> !a_map
  %b_cast = memref.cast %B : memref<8x128xf16> to memref<*xf16>
  %b_map = nvgpu.tma.create.descriptor %b_cast box[%c8, %c32] : memref<*xf16> -> !b_map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x1x64x32xf16, #space>
    %b = memref.alloc() {operand_b} : memref<2x1x8x32xf16, #space>
    %thread = gpu.thread_id x
    %leader = arith.cmpi eq, %thread, %c0 : index
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvgpu.mbarrier.init %empty[%c0], %c1 : !barriers
    }
    gpu.barrier
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %loop:2 = scf.for %k = %c0 to %c128 step %c32 iter_args(%stage = %c0, %acc = %zero) -> (index, !sums) {
      scf.if %leader {
        nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : !barriers
        %a_box = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
          : memref<2x1x64x32xf16, #space> to memref<64x32xf16, #view, #space>
        nvgpu.tma.async.load %a_map[%k, %c0], %full[%stage] to %a_box : !a_map, !barriers -> memref<64x32xf16, #view, #space>
        %b_box = memref.subview %b[%stage, 0, 0, 0] [1, 1, 8, 32] [1, 1, 1, 1]
          : memref<2x1x8x32xf16, #space> to memref<8x32xf16, #view, #space>
        nvgpu.tma.async.load %b_map[%k, %c0], %full[%stage] to %b_box : !b_map, !barriers -> memref<8x32xf16, #view, #space>
      }
      %a_tile = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
        : memref<2x1x64x32xf16, #space> to memref<1x64x32xf16, #stage, #space>
      %b_tile = memref.subview %b[%stage, 0, 0, 0] [1, 1, 8, 32] [1, 1, 1, 1]
        : memref<2x1x8x32xf16, #space> to memref<1x8x32xf16, #b_stage, #space>
      nvgpu.mbarrier.try_wait.parity %full[%stage], %false, %ticks : !barriers
      %a_desc = "tc.warpgroup_generate_descriptor"(%a_tile, %a_map) : (memref<1x64x32xf16, #stage, #space>, !a_map)
        -> !nvgpu.warpgroup.descriptor<tensor = memref<64x32xf16, #space>>
      %b_desc = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<1x8x32xf16, #b_stage, #space>, !b_map)
        -> !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>
      %next = nvgpu.warpgroup.mma %a_desc, %b_desc, %acc : <tensor = memref<64x32xf16, #space>>,
        <tensor = memref<32x8xf16, #space>>, <fragmented = vector<64x8xf32>> -> <fragmented = vector<64x8xf32>>
      %first = arith.cmpi eq, %thread, %c0 : index
      %later = arith.cmpi ne, %k, %c0 : index
      %releases = arith.andi %first, %later : i1
      scf.if %releases {
        %token = nvgpu.mbarrier.arrive %empty[%stage] : !barriers -> !nvgpu.mbarrier.token
      }
      %other = arith.subi %c1, %stage : index
      scf.yield %other, %next : index, !sums
    }
    "tc.warpgroup_mma_store"(%loop#1, %C) : (!sums, memref<64x8xf32>) -> ()
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
#view = strided<[32, 1], offset: ?>
#stage = strided<[2048, 32, 1], offset: ?>
#b_stage = strided<[256, 32, 1], offset: ?>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf16, 3>, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                     interleave = none>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>
// expected-error @below {{expected an operand that elementwise ops compute, in a buffer without copies}}
module {
func.func @an_argument(%Q: memref<64x128xi8>, %S: memref<64xf16>, %B: memref<8x128xf16>, %C: memref<64x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 4608 : index
  %ticks = arith.constant 10000000 : index
  %false = arith.constant false
  %w = memref.alloc() {whole, workspace} : memref<64x128xf16>
  %w_cast = memref.cast %w : memref<64x128xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %w_cast box[%c64, %c32] : memref<*xf16> -> !a_map
  %b_cast = memref.cast %B : memref<8x128xf16> to memref<*xf16>
  %b_map = nvgpu.tma.create.descriptor %b_cast box[%c8, %c32] : memref<*xf16> -> !b_map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<2x1x64x32xf16, #space>
    %b = memref.alloc() {operand_b} : memref<2x1x8x32xf16, #space>
    %thread = gpu.thread_id x
    %leader = arith.cmpi eq, %thread, %c0 : index
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvgpu.mbarrier.init %empty[%c0], %c1 : !barriers
    }
    gpu.barrier
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %loop:2 = scf.for %k = %c0 to %c128 step %c32 iter_args(%stage = %c0, %acc = %zero) -> (index, !sums) {
      scf.if %leader {
        nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : !barriers
        %a_box = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
          : memref<2x1x64x32xf16, #space> to memref<64x32xf16, #view, #space>
        nvgpu.tma.async.load %a_map[%k, %c0], %full[%stage] to %a_box : !a_map, !barriers -> memref<64x32xf16, #view, #space>
        %b_box = memref.subview %b[%stage, 0, 0, 0] [1, 1, 8, 32] [1, 1, 1, 1]
          : memref<2x1x8x32xf16, #space> to memref<8x32xf16, #view, #space>
        nvgpu.tma.async.load %b_map[%k, %c0], %full[%stage] to %b_box : !b_map, !barriers -> memref<8x32xf16, #view, #space>
      }
      %a_tile = memref.subview %a[%stage, 0, 0, 0] [1, 1, 64, 32] [1, 1, 1, 1]
        : memref<2x1x64x32xf16, #space> to memref<1x64x32xf16, #stage, #space>
      %b_tile = memref.subview %b[%stage, 0, 0, 0] [1, 1, 8, 32] [1, 1, 1, 1]
        : memref<2x1x8x32xf16, #space> to memref<1x8x32xf16, #b_stage, #space>
      nvgpu.mbarrier.try_wait.parity %full[%stage], %false, %ticks : !barriers
      %a_desc = "tc.warpgroup_generate_descriptor"(%a_tile, %a_map) : (memref<1x64x32xf16, #stage, #space>, !a_map)
        -> !nvgpu.warpgroup.descriptor<tensor = memref<64x32xf16, #space>>
      %b_desc = "tc.warpgroup_generate_descriptor"(%b_tile, %b_map) : (memref<1x8x32xf16, #b_stage, #space>, !b_map)
        -> !nvgpu.warpgroup.descriptor<tensor = memref<32x8xf16, #space>>
      %next = nvgpu.warpgroup.mma %a_desc, %b_desc, %acc : <tensor = memref<64x32xf16, #space>>,
        <tensor = memref<32x8xf16, #space>>, <fragmented = vector<64x8xf32>> -> <fragmented = vector<64x8xf32>>
      %first = arith.cmpi eq, %thread, %c0 : index
      %later = arith.cmpi ne, %k, %c0 : index
      %releases = arith.andi %first, %later : i1
      scf.if %releases {
        %token = nvgpu.mbarrier.arrive %empty[%stage] : !barriers -> !nvgpu.mbarrier.token
      }
      %other = arith.subi %c1, %stage : index
      scf.yield %other, %next : index, !sums
    }
    "tc.warpgroup_mma_store"(%loop#1, %C) : (!sums, memref<64x8xf32>) -> ()
    gpu.terminator
  }
  return
}
}
