// The blocks of a cluster that share a tile load a slice each, for all of them. Each still expects the bytes of whole
// tiles, and a stage is free when all blocks that read what is loaded have said so.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step multicast_tiles --split-input-file
// DEFINE: %{first} = sed '/^\/\/ Of two blocks/Q' %s
// RUN: %{opt} %s --set cluster_m=2 --verify-diagnostics | FileCheck %s
// RUN: %{first} | %{opt} - --set cluster_n=2 | FileCheck %s --check-prefix=COLUMNS
// RUN: %{first} | %{opt} - --set cluster_m=2 --set cluster_n=2 | FileCheck %s --check-prefix=BOTH
// RUN: %{first} | %{opt} - | FileCheck %s --check-prefix=ONE

// Two blocks, one below the other, share B's tile of two boxes: one each. A's tile is each block's own.
// Peer of a thread: rank of the first block of the column, plus the thread's number in its warpgroup.
// CHECK-DAG: #[[to_peer:.+]] = affine_map<()[s0, s1] -> (s0 + (s1 floordiv 2) * 2 - (s0 floordiv 128) * 128)>
// CHECK-DAG: #[[to_column:.+]] = affine_map<()[s0, s1] -> (s0 + s1 * 64 - (s1 floordiv 2) * 128)>
// CHECK-LABEL: func.func @boxes(
// CHECK: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// CHECK: [[rank:%.+]] = gpu.cluster_block_id x
// CHECK-NEXT: [[row:%.+]] = affine.apply #{{.*}}()[[[rank]]]
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create
// CHECK-NEXT: [[empty:%.+]] = nvgpu.mbarrier.create
// Two warpgroups of each of two blocks empty a stage; one arrival fills it.
// CHECK: nvgpu.mbarrier.init [[full]][%c0], %c1 :
// CHECK-NEXT: nvgpu.mbarrier.init [[empty]][%c0], %c4 :
// No block loads, or arrives, where barriers may not be initialized yet.
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NOT: gpu.barrier
// CHECK: [[peer:%.+]] = affine.apply #[[to_peer]]()[%{{.*}}, [[rank]]]
// CHECK-NEXT: [[own:%.+]] = nvgpu.mbarrier.get [[empty]][%c0]
// CHECK-NEXT: [[number:%.+]] = arith.index_cast [[peer]] : index to i32
// CHECK-NEXT: [[remote:%.+]] = nvvm.inline_ptx "mapa.shared::cluster.u32 {$w0}, {$r0}, {$r1};"
// CHECK-SAME: ro([[own]], [[number]] : i32, i32)
// CHECK: nvgpu.mbarrier.arrive.expect_tx [[full]][%c0], %c24576
// CHECK-NEXT: memref.subview
// CHECK-NEXT: nvgpu.tma.async.load [[a_map]][%c0, %c0], [[full]][%c0] to %{{\w+}} :
// CHECK: [[bits:%.+]] = arith.shli %c3_i32, %{{.*}}
// CHECK-NEXT: [[mask:%.+]] = arith.trunci [[bits]] : i32 to i16
// CHECK-NEXT: [[j:%.+]] = affine.apply #[[to_column]]()[%j, [[rank]]]
// CHECK-NEXT: [[own:%.+]] = memref.subview %{{.*}}[0, [[row]], 0, 0] [1, 1, 64, 64]
// CHECK-NEXT: nvgpu.tma.async.load [[b_map]]{{\[}}[[j]], %c0], [[full]][%c0] to [[own]] multicast_mask = [[mask]] :
// CHECK-NOT: nvgpu.tma.async.load

// Two threads of a warpgroup release a stage, one in each block, in the loop and behind it.
// CHECK: [[thread:%.+]] = affine.apply
// CHECK-NEXT: [[arrives:%.+]] = arith.cmpi ult, [[thread]], %c2
// CHECK-NEXT: [[releases:%.+]] = arith.andi [[arrives]], %later
// CHECK-NEXT: scf.if [[releases]] {
// CHECK-NEXT: [[offset:%.+]] = affine.apply #{{.*}}()[%stage]
// CHECK-NEXT: [[bytes:%.+]] = arith.index_cast [[offset]] : index to i32
// CHECK-NEXT: [[barrier:%.+]] = arith.addi [[remote]], [[bytes]] : i32
// CHECK-NEXT: nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64 _, [{$r0}];"
// CHECK-SAME: ro([[barrier]] : i32) memory_clobber = true
// CHECK-NEXT: }
// CHECK-NEXT: scf.if [[arrives]] {
// CHECK-NEXT: nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64 _, [{$r0}];"
// CHECK-SAME: ro([[remote]] : i32) memory_clobber = true
// CHECK-NEXT: }
// CHECK-NOT: {{nvgpu.mbarrier.arrive|mbarrier.arrive.shared}}
// In the end no block leaves while others write to it.
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: gpu.terminator
// CHECK: // -----

// Two blocks beside each other share A's one box, and load half of its rows each. B's boxes are each block's own.
// COLUMNS: #[[to_row:.+]] = affine_map<()[s0] -> (s0 * 32)>
// COLUMNS-LABEL: func.func @boxes(
// COLUMNS: [[a_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c32, %c64]
// COLUMNS-SAME: -> <tensor = memref<32x64xf16,
// COLUMNS: [[b_map:%.+]] = nvgpu.tma.create.descriptor {{.*}} box[%c64, %c64]
// COLUMNS: nvgpu.mbarrier.init {{.*}}, %c4 :
// COLUMNS: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// COLUMNS-NEXT: [[row:%.+]] = affine.apply #[[to_row]]()
// COLUMNS-NEXT: [[own:%.+]] = memref.subview %{{.*}}[0, 0, [[row]], 0] [1, 1, 32, 64]
// COLUMNS-NEXT: nvgpu.tma.async.load [[a_map]][%c0, [[row]]], {{.*}} to [[own]] multicast_mask = %c3_i16 :
// COLUMNS-NOT: multicast_mask
// COLUMNS-COUNT-2: nvgpu.tma.async.load [[b_map]]
// COLUMNS-NOT: {{multicast_mask|nvgpu.tma.async.load}}

// 2 x 2: a block's loads reach three blocks, itself included, with two warpgroups each. A's tile goes to every second
// rank (5), B's to two neighbours (3).
// Peers of a thread: blocks of the column, then those of the row, from the one behind the block's own.
// BOTH: #[[to_peer:.+]] = affine_map<()[s0, s1] -> (s0 * 2 + s1 - (s0 floordiv 128) * 256
// BOTH-SAME: - ((s0 mod 128 + s1 floordiv 2 + 1) floordiv 2) * 4 + 2)>
// BOTH-LABEL: func.func @boxes(
// BOTH: nvgpu.mbarrier.init {{.*}}, %c6 :
// Threads 0 and 1 arrive in the blocks of the column, thread 2 in the other one of the row.
// BOTH: [[in_row:%.+]] = affine.apply #[[to_peer]]
// BOTH: [[in_column:%.+]] = arith.cmpi ult, %{{.*}}, %c2
// BOTH-NEXT: [[peer:%.+]] = arith.select [[in_column]], %{{.*}}, [[in_row]] :
// BOTH: [[number:%.+]] = arith.index_cast [[peer]] : index to i32
// BOTH-NEXT: nvvm.inline_ptx "mapa.shared::cluster.u32 {$w0}, {$r0}, {$r1};" ro(%{{.*}}, [[number]] : i32, i32)
// BOTH: nvgpu.mbarrier.arrive.expect_tx {{.*}}, %c24576
// BOTH: [[bits:%.+]] = arith.shli %c5_i32, %{{.*}}
// BOTH-NEXT: [[a_mask:%.+]] = arith.trunci [[bits]]
// BOTH: nvgpu.tma.async.load {{.*}} multicast_mask = [[a_mask]] : {{.*}}memref<32x64xf16
// BOTH: [[bits:%.+]] = arith.shli %c3_i32, %{{.*}}
// BOTH-NEXT: [[b_mask:%.+]] = arith.trunci [[bits]]
// BOTH: nvgpu.tma.async.load {{.*}} multicast_mask = [[b_mask]] : {{.*}}memref<64x64xf16
// BOTH-NOT: nvgpu.tma.async.load
// BOTH: arith.cmpi ult, %{{.*}}, %c3

// ONE-LABEL: func.func @boxes(
// ONE-NOT: {{multicast_mask|nvvm.cluster|mapa|cluster_block_id}}
// ONE: gpu.barrier
// ONE-COUNT-3: nvgpu.tma.async.load
// ONE-NOT: {{multicast_mask|nvvm.cluster|mapa|cluster_block_id}}
#space = #gpu.address_space<workgroup>
#view = strided<[64, 1], offset: ?>
#box0 = strided<[64, 1]>
#box1 = strided<[64, 1], offset: 4096>
#in_warpgroup = affine_map<()[s0] -> (s0 mod 128)>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @boxes(%A: memref<*xf16>, %B: memref<*xf16>, %leader: i1, %later: i1, %stage: index, %j: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 24576 : index
  %a_map = nvgpu.tma.create.descriptor %A box[%c64, %c64] : memref<*xf16> -> !map
  %b_map = nvgpu.tma.create.descriptor %B box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() {operand_a} : memref<1x1x64x64xf16, #space>
    %b = memref.alloc() {operand_b} : memref<1x2x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      nvgpu.mbarrier.init %full[%c0], %c1 : !barriers
      nvgpu.mbarrier.init %empty[%c0], %c2 : !barriers
    }
    gpu.barrier
    scf.if %leader {
      nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
      %tile = memref.subview %a[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, #box0, #space>
      nvgpu.tma.async.load %a_map[%c0, %c0], %full[%c0] to %tile : !map, !barriers -> memref<64x64xf16, #box0, #space>
      %left = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x2x64x64xf16, #space> to memref<64x64xf16, #box0, #space>
      nvgpu.tma.async.load %b_map[%j, %c0], %full[%c0] to %left : !map, !barriers -> memref<64x64xf16, #box0, #space>
      %right = memref.subview %b[0, 1, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x2x64x64xf16, #space> to memref<64x64xf16, #box1, #space>
      %next = arith.addi %j, %c64 : index
      nvgpu.tma.async.load %b_map[%next, %c0], %full[%c0] to %right : !map, !barriers
          -> memref<64x64xf16, #box1, #space>
    }
    %thread = gpu.thread_id x
    %number = affine.apply #in_warpgroup()[%thread]
    %one = arith.cmpi eq, %number, %c0 : index
    %releases = arith.andi %one, %later : i1
    scf.if %releases {
      %token = nvgpu.mbarrier.arrive %empty[%stage] : !barriers -> !token
    }
    %one_again = arith.cmpi eq, %number, %c0 : index
    scf.if %one_again {
      %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
    }
    gpu.terminator
  }
  return
}

// Of two blocks below each other only.
// -----

// One box of B, in two slices of 32 rows, issued by a producer's thread: no branch holds nothing but the loads.
// CHECK-DAG: #[[to_row:.+]] = affine_map<()[s0] -> (s0 * 32 - (s0 floordiv 2) * 64)>
// CHECK-LABEL: func.func @rows(
// CHECK: nvgpu.tma.create.descriptor {{.*}} box[%c32, %c64] : memref<*xf16> -> <tensor = memref<32x64xf16,
// CHECK: scf.for [[k:%.+]] = %c0
// CHECK: [[first:%.+]] = affine.apply #[[to_row]]()
// CHECK-NEXT: [[row:%.+]] = arith.addi [[k]], [[first]]
// CHECK-NEXT: [[own:%.+]] = memref.subview %{{.*}}[1, 0, [[first]], 0] [1, 1, 32, 64]
// CHECK-NEXT: nvgpu.tma.async.load %{{.*}}[%c64, [[row]]], {{.*}} to [[own]] multicast_mask
// CHECK-NOT: nvgpu.tma.async.load
// CHECK: // -----
#space = #gpu.address_space<workgroup>
#stage1 = strided<[64, 1], offset: 4096>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @rows(%B: memref<*xf16>, %leader: i1, %number: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %b_map = nvgpu.tma.create.descriptor %B box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<2x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      scf.for %k = %c0 to %c256 step %c64 {
        %tile = memref.subview %b[1, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
            : memref<2x1x64x64xf16, #space> to memref<64x64xf16, #stage1, #space>
        nvgpu.tma.async.load %b_map[%c64, %k], %full[%c1] to %tile : !map, !barriers
            -> memref<64x64xf16, #stage1, #space>
      }
    } else {
      %one = arith.cmpi eq, %number, %c0 : index
      scf.if %one {
        %token = nvgpu.mbarrier.arrive %empty[%c1] : !barriers -> !token
      }
    }
    gpu.terminator
  }
  return
}

// -----

// No two slices of nine rows.
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<9x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @few_rows(%B: memref<*xf16>, %leader: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c64 = arith.constant 64 : index
  %b_map = nvgpu.tma.create.descriptor %B box[%c9, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<1x1x9x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      %tile = memref.subview %b[0, 0, 0, 0] [1, 1, 9, 64] [1, 1, 1, 1]
          : memref<1x1x9x64xf16, #space> to memref<9x64xf16, strided<[64, 1]>, #space>
      // expected-error@+1 {{a tile of 9 rows of 128 bytes cannot be loaded in 2 slices of as many rows at multiples of 128 bytes}}
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %tile : !map, !barriers
          -> memref<9x64xf16, strided<[64, 1]>, #space>
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @no_prologue(%B: memref<*xf16>, %leader: i1, %number: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %b_map = nvgpu.tma.create.descriptor %B box[%c64, %c64] : memref<*xf16> -> !map
  // expected-error@+1 {{tc.multicast_tiles: expected a barrier after the initialization of mbarriers}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<1x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      %tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, strided<[64, 1]>, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %tile : !map, !barriers
          -> memref<64x64xf16, strided<[64, 1]>, #space>
    }
    %one = arith.cmpi eq, %number, %c0 : index
    scf.if %one {
      %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
    }
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @no_release(%B: memref<*xf16>, %leader: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %b_map = nvgpu.tma.create.descriptor %B box[%c64, %c64] : memref<*xf16> -> !map
  // expected-error@+1 {{tc.multicast_tiles: no op releases a stage of the pipeline}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %b = memref.alloc() {operand_b} : memref<1x1x64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      %tile = memref.subview %b[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1]
          : memref<1x1x64x64xf16, #space> to memref<64x64xf16, strided<[64, 1]>, #space>
      nvgpu.tma.async.load %b_map[%c0, %c0], %full[%c0] to %tile : !map, !barriers
          -> memref<64x64xf16, strided<[64, 1]>, #space>
    }
    gpu.terminator
  }
  return
}

// -----

func.func @no_loads() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.multicast_tiles: no TMA loads of the tile of B, which blocks share}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.barrier
    gpu.terminator
  }
  return
}

// -----

#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
func.func @tile_from_argument(%A: memref<16x64xf16>, %leader: i1, %tile: memref<64x64xf16, #space>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %any = memref.cast %A : memref<16x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      // expected-error@+1 {{tc.multicast_tiles: expected an operand that views a tile in shared memory}}
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %tile : !map, !barriers -> memref<64x64xf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.multicast_tiles: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
