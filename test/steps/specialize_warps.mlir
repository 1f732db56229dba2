// One warpgroup more, whose first thread issues loads; the others multiply. The roles share nothing but the barriers:
// no consumer issues a load, the producer waits for no tile, multiplies nothing and writes nothing. Its one thread waits
// for no warp.
//
// DEFINE: %{opt} = %stepladder-opt --pipeline wgmma --step specialize_warps --split-input-file
// DEFINE: %{accepted} = sed '/^\/\/ Refused/Q' %s
// RUN: %{opt} %s --verify-diagnostics | FileCheck %s
// RUN: %{accepted} | %{opt} - --set consumer_warpgroups=3 --set block_m=192 --set block_n=128 \
// RUN:   | FileCheck %s --check-prefix=THREE
// RUN: %{accepted} | %{opt} - --set block_m=256 --set block_n=192 | FileCheck %s --check-prefix=MANY-SUMS
// RUN: %refused 2 %{opt} %s --set consumer_warpgroups=3 --set block_m=192 --set block_n=256 \
// RUN:   | FileCheck %s --check-prefix=TOO-MANY

// TOO-MANY: step 'specialize_warps': three consumer warpgroups require accumulator_registers to be at most 100

// A warpgroup has 128 threads: 32 + 3 * 160 registers for one thread of each of four are all there are.
// THREE: nvvm.setmaxregister decrease 32
// THREE: nvvm.setmaxregister increase 160

// 192 sums a thread.
// MANY-SUMS: nvvm.setmaxregister decrease 24
// MANY-SUMS: nvvm.setmaxregister increase 240

// CHECK-LABEL: func.func @two_consumers(
// CHECK: gpu.launch {{.*}} threads({{[^)]*}}) in (%{{[^)]*}} = %c384, %{{[^)]*}} = %c1, %{{[^)]*}} = %c1)
// CHECK: [[full:%.+]] = nvgpu.mbarrier.create
// CHECK-NEXT: [[empty:%.+]] = nvgpu.mbarrier.create
// Both roles see the same tile, which is allocated behind the prologue's barrier.
// CHECK: [[late:%.+]] = memref.alloc() {operand_c}
// CHECK-NEXT: gpu.barrier
// The number of a warpgroup is the same for a warp, and ptxas is to know it.
// CHECK: [[number:%.+]] = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT: [[uniform:%.+]], %{{.*}} = gpu.shuffle idx [[number]], %c0_i32, %c32_i32
// CHECK-NEXT: [[warpgroup:%.+]] = arith.index_cast [[uniform]] : i32 to index
// CHECK-NEXT: [[loads:%.+]] = arith.cmpi eq, [[warpgroup]], %c2
// CHECK-NEXT: scf.if [[loads]] {

// The producer. The state of the pipeline goes on from tile to tile.
// CHECK-NEXT: nvvm.setmaxregister decrease 40
// CHECK-NEXT: [[one:%.+]] = arith.cmpi eq, %thread_id_x, %c256
// CHECK-NEXT: scf.if [[one]] {
// CHECK-NEXT: [[tiles:%.+]] = scf.for [[tile:%.+]] = %block to %c4 step %c1 iter_args([[parity:%\w+]] = %false) -> (i1)
// CHECK-NEXT: [[steps:%.+]] = scf.for [[k:%.+]] = %c0 to %c256 step %c64 iter_args([[own:%\w+]] = [[parity]]) -> (i1)
// CHECK-NEXT: [[other:%.+]] = arith.xori [[own]], %true
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[empty]][%c0], [[other]],
// CHECK-NEXT: nvgpu.mbarrier.arrive.expect_tx [[full]][%c0], %c8192
// CHECK-NEXT: nvgpu.tma.async.load %map{{\[}}[[k]], [[tile]]], [[full]][%c0]
// CHECK-NEXT: scf.yield [[other]]
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield [[steps]]
// CHECK-NEXT: }
// CHECK-NEXT: }

// The consumers.
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 232
// CHECK-NEXT: scf.for [[tile:%.+]] = %block to %c4 step %c1 iter_args([[parity:%\w+]] = %false) -> (i1)
// CHECK: scf.for [[k:%.+]] = %c0 to %c256 step %c64 iter_args([[own:%\w+]] = [[parity]], {{.*}})
// CHECK-NEXT: nvgpu.mbarrier.try_wait.parity [[full]][%c0], [[own]],
// CHECK-NEXT: nvgpu.warpgroup.generate.descriptor
// CHECK-NEXT: nvgpu.warpgroup.mma %
// CHECK-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CHECK: nvgpu.mbarrier.arrive [[empty]][%c0]
// CHECK-NOT: {{nvgpu.tma|expect_tx|try_wait}}
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: nvgpu.warpgroup.mma.store %{{.*}}, [[late]]
// CHECK-NEXT: linalg.copy ins([[late]] :
// CHECK-NOT: {{nvgpu|setmaxregister|} else}}
// CHECK: gpu.terminator
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @two_consumers(%block: index, %map: !map, %b: !tile, %C: memref<64x64xf32>) {
  %true = arith.constant true
  %all = arith.constant -1 : i32
  %false = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 8192 : index
  %ticks = arith.constant 1000 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %thread = gpu.thread_id x
    %leader = arith.cmpi eq, %thread, %c0 : index
    %full = nvgpu.mbarrier.create -> !barriers
    %empty = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    %late = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %last = scf.for %i = %block to %c4 step %c1 iter_args(%start = %false) -> (i1) {
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %d:2 = scf.for %k = %c0 to %c256 step %c64 iter_args(%parity = %start, %sum = %zero) -> (i1, !sums) {
        scf.if %leader {
          %other = arith.xori %parity, %true : i1
          nvgpu.mbarrier.try_wait.parity %empty[%c0], %other, %ticks : !barriers
          nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barriers
          nvgpu.tma.async.load %map[%k, %i], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
        }
        nvgpu.mbarrier.try_wait.parity %full[%c0], %parity, %ticks : !barriers
        %a = nvgpu.warpgroup.generate.descriptor %shared, %map : memref<64x64xf16, #space>, !map -> !tile
        %next = nvgpu.warpgroup.mma %a, %b, %sum : !tile, !tile, !sums -> !sums
        nvvm.bar.warp.sync %all : i32
        scf.if %leader {
          %token = nvgpu.mbarrier.arrive %empty[%c0] : !barriers -> !token
        }
        %next_parity = arith.xori %parity, %true : i1
        scf.yield %next_parity, %next : i1, !sums
      }
      nvvm.wgmma.wait.group.sync.aligned 0
      nvgpu.warpgroup.mma.store %d#1, %late : !sums to memref<64x64xf32, #space>
      linalg.copy ins(%late : memref<64x64xf32, #space>) outs(%C : memref<64x64xf32>)
      scf.yield %d#0 : i1
    }
    gpu.terminator
  }
  return
}

// -----

// No loop at all, of one tile and one step of k. What the splits of a tile exchange behind the product is the
// consumers' too: all their threads, and none of the producer.
// CHECK-LABEL: func.func @split_k(
// CHECK: nvvm.setmaxregister decrease
// CHECK-NOT: {{nvvm.mapa|nvvm.cluster|nvvm.barrier|nvvm.inline_ptx|vector.store|linalg|llvm.mlir|ub.poison}}
// CHECK: nvgpu.tma.async.load
// CHECK-NOT: {{nvvm.mapa|nvvm.cluster|nvvm.barrier|nvvm.inline_ptx|vector.store|linalg|llvm.mlir|ub.poison}}
// CHECK: } else {
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: nvvm.mapa
// CHECK: nvvm.inline_ptx
// CHECK-NEXT: nvvm.barrier
// CHECK: llvm.load
// CHECK: vector.store
// CHECK: // -----
#space = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero,
                                   interleave = none>
!tile = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #space>>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @split_k(%leader: i1, %map: !map, %shared: memref<64x64xf16, #space>, %a: !tile, %b: !tile,
                   %own: !llvm.ptr<3>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1_i32 = arith.constant 1 : i32
  %c128 = arith.constant 128 : index
  %c128_i32 = arith.constant 128 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %sums = memref.alloc() {operand_c} : memref<64x64xf32, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
    }
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %d = nvgpu.warpgroup.mma %a, %b, %zero {waitGroup = 0 : i64} : !tile, !tile, !sums -> !sums
    nvgpu.warpgroup.mma.store %d, %sums : !sums to memref<64x64xf32, #space>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %part = nvvm.mapa %own, %c1_i32 : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.inline_ptx "fence.proxy.async;"
    nvvm.barrier id = %c1_i32 number_of_threads = %c128_i32
    %value = llvm.load %part : !llvm.ptr<7> -> vector<4xf32>
    vector.store %value, %C[%c0, %c0] : memref<64x64xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}

// Refused below.
// -----

func.func @no_loads() {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.specialize_warps: expected one point where loads are issued, found 0}}
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
func.func @two_places(%leader: i1, %map: !map) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.specialize_warps: expected one point where loads are issued, found 2}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
    }
    scf.if %leader {
      nvgpu.tma.async.load %map[%c1, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
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
func.func @block_from_argument(%n: index, %leader: i1, %map: !map) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{tc.specialize_warps: the sizes of the launch are not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    gpu.barrier
    scf.if %leader {
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
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
func.func @no_prologue(%leader: i1, %map: !map) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  // expected-error@+1 {{tc.specialize_warps: expected a barrier after the initialization of mbarriers}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %shared = memref.alloc() {operand_a} : memref<64x64xf16, #space>
    %full = nvgpu.mbarrier.create -> !barriers
    scf.if %leader {
      nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %shared : !map, !barriers -> memref<64x64xf16, #space>
    }
    gpu.terminator
  }
  return
}

// -----

// expected-error@unknown {{tc.specialize_warps: expected one gpu.launch, found 0}}
func.func @no_launch() {
  return
}
