// The tiles of the last, partial wave are divided along k: a block computes its whole tiles, then a slice or two, each
// from its own first step of k to its own last. Who has the beginning of a tile stores, the others add, in turn.
//
// DEFINE: %{opt} = %stepladder-opt %s --pipeline wgmma --set tile_scheduler=stream_k --step stream_k_tail \
// DEFINE:   --split-input-file
// RUN: %{opt} --verify-diagnostics | FileCheck %s
// RUN: %refused 2 %{opt} --set persistent_blocks=0 | FileCheck %s --check-prefix=NO-TILES
// RUN: %refused 2 %{opt} --set schedule=pingpong | FileCheck %s --check-prefix=PINGPONG

// NO-TILES: step 'stream_k_tail': tile_scheduler = stream_k requires persistent_blocks above 0, blocks that compute several tiles
// PINGPONG: step 'stream_k_tail': tile_scheduler = stream_k requires schedule = cooperative

// Four tiles of eight steps on three blocks: one wave, and a tile of eight steps, of which a block takes four at least.
// One semaphore for each of two warpgroups.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 4)>
// CHECK-DAG: #[[border:.+]] = affine_map<()[s0] -> ((s0 floordiv 8) * 8 + 8)>
// CHECK-DAG: #[[whole:.+]] = affine_map<()[s0, s1] -> (s0 * 3 + s1)>
// CHECK-DAG: #[[tile_of:.+]] = affine_map<()[s0] -> (s0 floordiv 8)>
// CHECK-DAG: #[[before:.+]] = affine_map<()[s0] -> ((s0 floordiv 8) * 8)>
// CHECK-DAG: #[[to_k:.+]] = affine_map<()[s0] -> (s0 * 64)>
// CHECK-DAG: #[[semaphore:.+]] = affine_map<()[s0, s1] -> (s0 * 8 + (s1 floordiv 128) * 4 - 24)>
// CHECK-DAG: #[[number:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK: memref.global "private" @stream_k_semaphores : memref<2xi32, #gpu.address_space<global>> = dense<0>
// CHECK-LABEL: func.func @one_tile_left(

// The producer loads what the consumers multiply.
// CHECK: scf.if %loads {
// CHECK: scf.for [[wave:%.+]] = %c0 to %{{.*}} step %c1 {
// CHECK: scf.for [[k:%.+]] = %{{.*}} to %{{.*}} step %c64 {
// CHECK-NEXT: nvgpu.tma.async.load %map{{\[}}[[k]], %{{.*}}]
// CHECK: } else {

// The block's slice [start, end) of the steps that are left, and the end of the tile that it begins in.
// CHECK-NEXT: [[first:%.+]] = affine.apply #[[begin]]()[%block]
// CHECK-NEXT: [[start:%.+]] = arith.minui [[first]], %c8
// CHECK-NEXT: [[behind:%.+]] = arith.addi [[start]], %c4
// CHECK-NEXT: [[end:%.+]] = arith.minui [[behind]], %c8
// CHECK-NEXT: [[tile_end:%.+]] = affine.apply #[[border]]()[[[start]]]
// CHECK-NEXT: [[border:%.+]] = arith.minui [[end]], [[tile_end]]
// CHECK-NEXT: [[two:%.+]] = arith.cmpi ult, [[border]], [[end]]
// CHECK-NEXT: [[any:%.+]] = arith.cmpi ult, [[start]], [[end]]
// CHECK-NEXT: [[one:%.+]] = arith.select [[any]], %c1, %c0
// CHECK-NEXT: [[slices:%.+]] = arith.select [[two]], %c2, [[one]]
// CHECK-NEXT: [[waves:%.+]] = arith.addi [[slices]], %c1
// CHECK-NEXT: [[latest:%.+]] = arith.select [[two]], [[border]], [[start]]
// CHECK-NEXT: scf.for [[wave:%.+]] = %c0 to [[waves]] step %c1 {
// One whole tile, then the beginning of a tile, then the end of one.
// CHECK-NEXT: [[is_whole:%.+]] = arith.cmpi ult, [[wave]], %c1
// CHECK-NEXT: [[is_latest:%.+]] = arith.cmpi eq, [[wave]], %c1
// CHECK-NEXT: [[own:%.+]] = affine.apply #[[whole]]()[[[wave]], %block]
// CHECK-NEXT: [[from:%.+]] = arith.select [[is_latest]], [[latest]], [[start]]
// CHECK-NEXT: [[to:%.+]] = arith.select [[is_latest]], [[end]], [[border]]
// CHECK-NEXT: [[split:%.+]] = affine.apply #[[tile_of]]()[[[from]]]
// CHECK-NEXT: [[steps_before:%.+]] = affine.apply #[[before]]()[[[from]]]
// CHECK-NEXT: [[left:%.+]] = arith.addi [[split]], %c3
// CHECK-NEXT: [[tile:%.+]] = arith.select [[is_whole]], [[own]], [[left]]
// CHECK-NEXT: [[distance:%.+]] = arith.subi [[from]], [[steps_before]]
// CHECK-NEXT: [[first:%.+]] = arith.select [[is_whole]], %c0, [[distance]]
// CHECK-NEXT: [[distance:%.+]] = arith.subi [[to]], [[steps_before]]
// CHECK-NEXT: [[last:%.+]] = arith.select [[is_whole]], %c8, [[distance]]
// CHECK: [[lower:%.+]] = affine.apply #[[to_k]]()[[[first]]]
// CHECK-NEXT: [[upper:%.+]] = affine.apply #[[to_k]]()[[[last]]]
// CHECK-NEXT: scf.for [[k:%.+]] = [[lower]] to [[upper]] step %c64
// CHECK-NEXT: nvgpu.warpgroup.mma %
// The first step of a slice has no product before it, whose stage it could release.
// CHECK-NEXT: [[later:%.+]] = arith.cmpi ne, [[k]], [[lower]]
// CHECK-NEXT: scf.if [[later]] {
// CHECK-NEXT: nvgpu.mbarrier.arrive
// CHECK: vector.store

// The slices of a tile take turns: number 0 has its first step.
// CHECK-NEXT: [[is_first:%.+]] = arith.cmpi eq, [[first]], %c0
// CHECK-NEXT: [[is_last:%.+]] = arith.cmpi eq, [[last]], %c8
// CHECK: [[bytes:%.+]] = affine.apply #[[semaphore]]()[[[tile]], %{{.*}}]
// CHECK: [[address:%.+]] = arith.index_cast %{{.*}} : index to i64
// CHECK-NEXT: [[number_before:%.+]] = affine.apply #[[number]]()[[[first]]]
// CHECK-NEXT: [[number:%.+]] = arith.index_cast [[number_before]] : index to i32
// CHECK-NEXT: [[adds:%.+]] = arith.cmpi ne, [[first]], %c0
// CHECK-NEXT: [[waits:%.+]] = arith.andi %one, [[adds]]
// CHECK-NEXT: scf.if [[waits]] {
// CHECK-NEXT: nvvm.inline_ptx "{{.*}}ld.acquire.gpu.global.b32 now, [{$r0}]; setp.ne.b32 p, now, {$r1}; @p bra WAIT;}"
// CHECK-SAME: ro([[address]], [[number]] : i64, i32)
// CHECK-NEXT: nvvm.inline_ptx "fence.proxy.async;"
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %one {
// CHECK-NEXT: scf.if [[is_first]] {
// CHECK-NEXT: nvgpu.tma.async.store %box to %c_map{{\[}}[[tile]], %c0]
// CHECK-NEXT: } else {
// CHECK: nvvm.inline_ptx "cp.reduce.async.bulk.tensor.2d
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: scf.if [[is_first]] {
// CHECK-NEXT: nvgpu.tma.async.store %box to %c_map{{\[}}[[tile]], %c64]
// CHECK-NEXT: } else {
// CHECK: nvvm.inline_ptx "cp.reduce.async.bulk.tensor.2d
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK-NEXT: }
// A split tile is handed on when TMA has written all of it; the last slice resets the semaphore.
// CHECK-NEXT: [[whole:%.+]] = arith.andi [[is_first]], [[is_last]]
// CHECK-NEXT: [[is_slice:%.+]] = arith.xori [[whole]], %true
// CHECK-NEXT: [[hands_on:%.+]] = arith.andi %one, [[is_slice]]
// CHECK-NEXT: scf.if [[hands_on]] {
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0{{$}}
// CHECK-NEXT: nvvm.inline_ptx "fence.proxy.async;"
// CHECK-NEXT: [[next:%.+]] = arith.addi [[number]], %c1_i32
// CHECK-NEXT: [[following:%.+]] = arith.select [[is_last]], %c0_i32, [[next]]
// CHECK-NEXT: nvvm.inline_ptx "st.release.gpu.global.b32 [{$r0}], {$r1};" ro([[address]], [[following]] : i64, i32)
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_tile_left(%loads: i1, %one: i1, %block: index, %map: !map, %c_map: !c_map, %a: !tile, %b: !tile,
                         %shared: memref<64x64xf16, #space>, %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.if %loads {
      scf.for %tile = %block to %c4 step %c3 {
        scf.for %k = %c0 to %c512 step %c64 {
          nvgpu.tma.async.load %map[%k, %tile], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
        }
      }
    } else {
      scf.for %tile = %block to %c4 step %c3 {
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %d = scf.for %k = %c0 to %c512 step %c64 iter_args(%sum = %zero) -> (!sums) {
          %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
          %later = arith.cmpi ne, %k, %c0 : index
          scf.if %later {
            %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
          }
          scf.yield %next : !sums
        }
        %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
        %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
        vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
        scf.if %one {
          nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
          nvvm.cp.async.bulk.commit.group
        }
        scf.if %one {
          nvgpu.tma.async.store %box to %c_map[%tile, %c64] : memref<64x32xf32, #space> -> !c_map
          nvvm.cp.async.bulk.commit.group
        }
      }
    }
    gpu.terminator
  }
  return
}

// -----

// Five pairs of tiles for two clusters of two blocks: two waves, and a pair for both. The tile of each rank has
// semaphores of its own.
// CHECK-DAG: #[[semaphore:.+]] = affine_map<()[s0, s1, s2] -> (s0 * 16 + s1 * 8 + (s2 floordiv 128) * 4 - 64)>
// CHECK: memref.global "private" @stream_k_semaphores : memref<4xi32
// CHECK-LABEL: func.func @clusters(
// CHECK: scf.for [[wave:%.+]] = %c0
// CHECK-NEXT: arith.cmpi ult, [[wave]], %c2
// CHECK: [[rank:%.+]] = gpu.cluster_block_id x
// CHECK: affine.apply #[[semaphore]]()[%{{.*}}, [[rank]], %{{.*}}]
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @clusters(%one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                    %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%dx = %c2, %dy = %c1, %dz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c5 step %c2 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

// Two tiles are left for three blocks, with 16 steps: six, six and four, so that the second block has a part of both.
// CHECK-DAG: #[[begin:.+]] = affine_map<()[s0] -> (s0 * 6)>
// CHECK-DAG: #[[number:.+]] = affine_map<()[s0, s1] -> ((s0 + s1 * 8) floordiv 6 - (s1 * 4) floordiv 3)>
// CHECK: memref.global "private" @stream_k_semaphores : memref<4xi32
// CHECK-LABEL: func.func @two_tiles_left(
// CHECK: [[first:%.+]] = affine.apply #[[begin]]()[%block]
// CHECK-NEXT: arith.minui [[first]], %c16
// C = AB + C: all slices add, in turn.
// CHECK: ld.acquire.gpu.global
// CHECK: scf.if %one {
// CHECK-NEXT: nvvm.inline_ptx "cp.reduce.async.bulk.tensor.2d{{.*}} ro(%address : i32)
// CHECK-NEXT: nvvm.cp.async.bulk.commit.group
// CHECK: st.release.gpu.global
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_tiles_left(%one: i1, %block: index, %address: i32, %a: !tile, %b: !tile,
                          %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c5 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvvm.inline_ptx "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [{$r0}];"
            ro(%address : i32)
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

// As many tiles as blocks have time for: nothing is left to divide.
// CHECK-LABEL: func.func @whole_waves(
// CHECK: scf.for [[tile:%.+]] = %block to %c6 step %c3 {
// CHECK-NOT: {{semaphores|cp.reduce|select}}
// CHECK: nvgpu.tma.async.store %box to %c_map{{\[}}[[tile]], %c0]
// CHECK-NOT: {{semaphores|cp.reduce|select}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @whole_waves(%one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                       %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c6 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

// Two tiles of two steps are left for three blocks, and no division of four steps ends before two.
// CHECK-LABEL: func.func @short_tiles(
// CHECK: scf.for [[tile:%.+]] = %block to %c5 step %c3 {
// CHECK-NOT: {{semaphores|cp.reduce|select}}
// CHECK: nvgpu.tma.async.store %box to %c_map{{\[}}[[tile]], %c0]
// CHECK-NOT: {{semaphores|cp.reduce|select}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @short_tiles(%one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                       %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c5 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

// k of one step.
// CHECK-LABEL: func.func @one_step(
// CHECK: scf.for [[tile:%.+]] = %block to %c4 step %c3 {
// CHECK-NOT: {{semaphores|cp.reduce|select}}
// CHECK: nvgpu.tma.async.store %box to %c_map{{\[}}[[tile]], %c0]
// CHECK-NOT: {{semaphores|cp.reduce|select}}
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_step(%one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                    %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c4 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @one_tile(%one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                    %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{tc.stream_k_tail: its blocks compute one tile each: make_persistent must run before}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = nvgpu.warpgroup.mma %a, %b, %zero : !tile, !tile, !sums -> !sums
    %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
    %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
    vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
    scf.if %one {
      nvgpu.tma.async.store %box to %c_map[%block, %c0] : memref<64x32xf32, #space> -> !c_map
      nvvm.cp.async.bulk.commit.group
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @direct_stores(%one: i1, %block: index, %a: !tile, %b: !tile,
                         %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{tc.stream_k_tail: TMA accumulates the slices of a tile: the epilogue must be tma}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c4 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @rounded(%one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                   %box: memref<64x64xf16, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{each slice of a tile would be rounded from f32 to f16: stream-K needs a C of the}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c4 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      %rounded = arith.truncf %pair : vector<2xf32> to vector<2xf16>
      vector.store %rounded, %box[%c0, %c0] : memref<64x64xf16, #space>, vector<2xf16>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x64xf16, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

// The tiles of a consumer follow from the number of its warpgroup.
#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @pingpong(%one: i1, %block: index, %step: index, %c_map: !c_map, %a: !tile, %b: !tile,
                    %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  // expected-error@+1 {{tc.stream_k_tail: stream-K does not support a ping-pong schedule}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c4 step %step {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!c_map = !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                     interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @block_from_argument(%n: index, %one: i1, %block: index, %c_map: !c_map, %a: !tile, %b: !tile,
                               %box: memref<64x32xf32, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{tc.stream_k_tail: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    scf.for %tile = %block to %c4 step %c3 {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!sums) {
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        scf.yield %next : !sums
      }
      %held = builtin.unrealized_conversion_cast %d : !sums to vector<1x8x2x2xf32>
      %pair = vector.extract %held[0, 0, 0] : vector<2xf32> from vector<1x8x2x2xf32>
      vector.store %pair, %box[%c0, %c0] : memref<64x32xf32, #space>, vector<2xf32>
      scf.if %one {
        nvgpu.tma.async.store %box to %c_map[%tile, %c0] : memref<64x32xf32, #space> -> !c_map
        nvvm.cp.async.bulk.commit.group
      }
    }
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.stream_k_tail: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
